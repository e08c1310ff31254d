import { Millpond } from 'millpond'

interface Report {
  customer: number
  day: string
}

const pond = await Millpond.open(process.env.STORE ?? 'sqlite:app.db', { signals: true })
const nights = pond.queue<null>('nights')
const reports = pond.queue<Report>('reports', { limits: { rate: '5/s' } }) // what the API takes, from all our processes together
const customers = Array.from({ length: Number(process.env.CUSTOMERS ?? 500) }, (_, customer) => customer)

// API=https://… node nightly.ts: start as many as you like. Each night has one job.
await pond.schedule('nightly', '0 2 * * *', nights, null, { tz: 'Europe/Paris' })

nights.work(async ({ pushedAt }) => {
  const day = pushedAt.toISOString().slice(0, 10)
  // The keys are remembered for a day, so a night that is tried again pushes no report twice.
  await reports.pushMany(
    customers.map((customer) => ({ customer, day })),
    { once: { for: '1d' }, each: ({ customer }) => ({ key: `${day}:${customer}` }) },
  )
})

reports.work(async ({ data }, ctx) => {
  const response = await fetch(`${process.env.API}/reports`, { method: 'POST', body: JSON.stringify(data) })
  if (response.status === 429) return ctx.rateLimited(Number(response.headers.get('retry-after') ?? 1) * 1000)
  if (!response.ok) throw new Error(`the API answered ${response.status}`)
  return { status: response.status }
})
