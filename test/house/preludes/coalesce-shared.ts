import { coalesce, Millpond } from 'millpond'

const fetchHeaders = async (url: string) => ({ url })
// After the block:
await getHeaders('http://shop.example/')
await pond.close()
