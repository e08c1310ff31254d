import { Millpond } from 'millpond'

const pond = await Millpond.open('memory:')
const queue = pond.queue<{ row: number }>('rows')
const insertMany = async (rows: { row: number }[]) =>
  new Set(rows.flatMap(({ row }, index) => (row < 0 ? [index] : [])))
const pushed = await queue.pushMany([{ row: 1 }, { row: -1 }])
// After the block:
await pond.result(pushed[0]?.id ?? '', { timeout: '10s' })
