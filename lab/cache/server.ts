/** `server.ts VARIANT REDIS COUNT`: `POST /` on Fastify answers with the value. It ends with the process that started it. */
import type { AddressInfo } from 'node:net'
import fastify from 'fastify'
import { ready } from '../role.ts'
import { variant } from './variants.ts'

const [name = '', redis = '', count = ''] = process.argv.slice(2)
const answer = await variant(name).serve(redis, Number(count))

const app = fastify()
app.post('/', async (_, reply) => reply.header('content-type', 'application/json; charset=utf-8').send(await answer()))
await app.listen({ port: 0, host: '127.0.0.1' })
ready(undefined, (app.server.address() as AddressInfo).port)
