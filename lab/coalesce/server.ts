/** `server.ts VARIANT UPSTREAM STORE`: `GET /` on Express. The same server for every variant. */
import { createServer } from 'node:http'
import express from 'express'
import { listen } from '../role.ts'
import { ANSWER } from './answer.ts'
import type { ServerTally } from './messages.ts'
import { variant } from './variants.ts'

const [name = '', upstream = '', store = ''] = process.argv.slice(2)
const service = await variant(name).serve(upstream, store)

const app = express()
app.get('/constant', (_, response) => {
  response.json(ANSWER)
})
app.get('/', async (_, response) => {
  response.json(await service.answer())
})
listen(createServer(app), (): ServerTally => {
  const { user, system } = process.cpuUsage()
  return { ...service.tally(), cpu: user + system }
})
