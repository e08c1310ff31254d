// node resize.ts: fan-out and fan-in. A video is cut into parts, the parts are worked on at once, and one job puts them together.
import { Millpond } from 'millpond'

const pond = await Millpond.open(process.env.STORE ?? 'memory:')
const cut = pond.queue<{ video: string }, { parts: number }>('cut')
const encode = pond.queue<{ video: string; part: number }, { bytes: number }>('encode')
const join = pond.queue<{ video: string }, { bytes: number }>('join')

cut.work(async ({ data: { video }, id }) => {
  const parts = Array.from({ length: 8 }, (_, part) => ({ video, part }))
  // What waits for this job waits for its parts, too.
  await encode.pushMany(parts, { partOf: id })
  return { parts: parts.length }
})
encode.work(({ data }) => ({ bytes: 1000 + data.part }), { concurrency: 4 })
join.work(async (_job, ctx) => {
  const parents = await ctx.parents<{ bytes?: number }>()
  return { bytes: parents.reduce((sum, { result }) => sum + (result?.bytes ?? 0), 0) }
})

const [, joined] = await pond.pushAll([
  [cut, { video: 'heron.mp4' }],
  [join, { video: 'heron.mp4' }, { after: [0] }],
])
console.log(await pond.result(joined?.id ?? ''))
await pond.close()
