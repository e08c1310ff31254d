import { Hono } from 'hono'
import { coalesceResponses } from 'millpond/web'

const share = coalesceResponses({ ttl: '1s' })
const app = new Hono()
// After the block:
app.get('/', (c) => c.text('hello'))
if ((await (await app.request('http://shop.example/')).text()) !== 'hello') throw new Error('another answer')
