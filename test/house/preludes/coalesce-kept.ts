import { coalesce } from 'millpond'

const key = 'http://shop.example/'
const getHeaders = coalesce(async (url: string) => ({ url }), { key: (url) => url, ttl: '1s' })
