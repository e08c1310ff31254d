import { freemem } from 'node:os'
import { atMost } from '../../bars.ts'
import type { StoreName } from '../../places.ts'
import { MISSING, type Summary } from '../../statistics.ts'
import { LOOKS } from '../../store.ts'
import type { Row } from '../row.ts'
import { type Figures, measured } from '../runner.ts'
import type { Section } from '../section.ts'

const SMALL = 10_000
const MIB = 1024 ** 2
/** A page of a hundred jobs, counts, or a job must be there before a person notices, in ms. */
const SLOWEST_LOOK = 100
/** Of a waiting job in memory, rounded up generously, in bytes. */
const BYTES_PER_JOB = 1000
const STORES: readonly StoreName[] = ['sqlite', 'memory']

export const calls: Section = async function* ({ backlog: large, quick }, stage) {
  for (const store of STORES) {
    const samples = quick ? 50 : 300
    const heap = Math.ceil((large * BYTES_PER_JOB) / MIB) + 500
    const title = `${store === 'memory' ? 'Memory' : 'SQLite FULL'}: a backlog of ${large.toLocaleString('en')}`
    if (store === 'memory' && freemem() < heap * MIB * 1.2) {
      yield { title, rows: [], notes: [`skipped: it would need ${heap} MiB of memory`] }
      continue
    }
    const task = { measure: 'calls', contender: 'Millpond', small: SMALL, large, samples } as const
    // Once: filling takes long, and the two sizes are measured in turn within it.
    const [figures] = await measured([task], 1, await stage.place(store), store === 'memory' ? heap : undefined)
    yield {
      title,
      rows: rows(figures),
      notes: [
        `beside: the same call on a backlog of ${SMALL.toLocaleString('en')}, in turn within one process; medians of ${samples}; one run`,
        'claims through the Store interface, released after; fill: 5,000 a call, 2 calls in flight',
      ],
    }
  }
}

function rows(figures: Figures | undefined): Row[] {
  const of = (name: string): Summary => figures?.(name) ?? MISSING
  const pair = (what: string, most?: number): Row => {
    const ours = of(`${what} large`)
    const small = of(`${what} small`)
    const bar = most === undefined ? undefined : atMost(ours.median / small.median, most, ' ×')
    return { name: what, unit: 'ms', ours, rivals: [{ name: 'small backlog', figure: small }], bar }
  }
  return [
    { name: 'fill', unit: 'jobs/s', ours: of('fill'), rivals: [] },
    ...[1, 50, 500].flatMap((limit) => {
      const p99: Row = {
        name: `claim ${limit}, p99`,
        unit: 'ms',
        ours: of(`claim ${limit} large p99`),
        rivals: [{ name: 'small backlog', figure: of(`claim ${limit} small p99`) }],
      }
      return [pair(`claim ${limit}`, 1.5), p99]
    }),
    pair('push 1'),
    pair('push 500'),
    ...LOOKS.map((what) => ({ ...pair(what), bar: atMost(of(`${what} large`).median, SLOWEST_LOOK, ' ms') })),
  ]
}
