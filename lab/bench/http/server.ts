/** The service that is loaded: takes a mail to be sent, answers 202 with its id. Modes as in `sections/http.ts`. */
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { Millpond } from '../../../src/index.ts'
import { ready } from '../../role.ts'

interface Mail {
  to: string
}

const [mode, url = ''] = process.argv.slice(2)
const pond = mode === 'plain' ? undefined : await Millpond.open(url)
const emails = pond?.queue<Mail>('emails')
if (mode === 'work') emails?.work(async () => {}, { concurrency: 50 })

const app = new Hono()
app.post('/emails', async (c) => {
  const mail = await c.req.json<Mail>()
  const id = emails === undefined ? '00000000-0000-7000-8000-000000000000' : (await emails.push({ to: mail.to })).id
  return c.json({ id }, 202)
})

serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => ready(undefined, port))
