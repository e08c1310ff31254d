import { Millpond } from 'millpond'

interface Report {
  customer: number
}

const pond = await Millpond.open(process.env.STORE ?? 'sqlite:app.db', { signals: true })
const reports = pond.queue<Report>('reports', { limits: { rate: '5/s' } }) // what the API takes, from all our processes together

// API=https://… node reports.ts: a worker. Start as many as you like.
reports.work(async (job, ctx) => {
  const response = await fetch(`${process.env.API}/reports`, { method: 'POST', body: JSON.stringify(job.data) })
  if (response.status === 429) return ctx.rateLimited(Number(response.headers.get('retry-after') ?? 1) * 1000)
  if (!response.ok) throw new Error(`the API answered ${response.status}`)
  return { status: response.status }
})

// node reports.ts 500: as many reports, pushed at once.
const count = Number(process.argv[2] ?? 0)
await reports.pushMany(Array.from({ length: count }, (_, customer) => ({ customer })))
