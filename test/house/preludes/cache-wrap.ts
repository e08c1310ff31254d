const loadProduct = async (id: number) => ({ id, name: 'lamp' })
const request = new Request('http://shop.example/products/42')
// After the block:
await cache.close()
