import { atLeast, atMost } from '../../bars.ts'
import type { Place } from '../../places.ts'
import { MISSING } from '../../statistics.ts'
import { LOOKS } from '../../store.ts'
import type { ContenderName } from '../contender.ts'
import type { Comparison } from '../row.ts'
import { measured } from '../runner.ts'
import type { Section, SectionOptions } from '../section.ts'

const SMALL = 10_000
const RUNS = 3
/** What is pushed and what is drained, once the backlog is there. */
const LOADS = {
  Millpond: { push: 50_000, drain: 100_000 },
  BullMQ: { push: 30_000, drain: 30_000 },
  'Graphile Worker, local queue': { push: 3000, drain: 50_000 },
  'Graphile Worker': { push: 3000, drain: 5000 },
  'pg-boss': { push: 5000, drain: 20_000 },
} satisfies Partial<Record<ContenderName, { push: number; drain: number }>>
type Loaded = keyof typeof LOADS

const FIGURES = [
  { figure: 'fill', name: 'filling, in bulks of 500, 2 in flight' },
  { figure: 'push', name: 'push, 50 in flight' },
  { figure: 'drain', name: 'drain, 50 slots' },
]
const LOOKED = LOOKS.map((look) => ({ figure: look, name: look === 'find' ? 'a job by its id' : look }))
/** A page of a hundred jobs, counts, or a job must be there before a person notices, in ms. */
const SLOWEST_LOOK = 100
const isLook = (figure: string): boolean => LOOKS.some((look) => look === figure)
const NOTE = 'the drain ends with as many jobs waiting'
const TIDY = `PostgreSQL’s tables are vacuumed and analysed before; ${NOTE}`

export const backlog: Section = async function* (options, stage) {
  const { backlog: larger } = options
  const size = Math.ceil(larger / 10)
  const redis = await stage.place(options.fsync ? 'redis-fsync' : 'redis')
  yield* measure('Redis', ['BullMQ'], [SMALL, size], redis, options)
  const postgres: Loaded[] = ['Graphile Worker, local queue', 'Graphile Worker', 'pg-boss']
  yield* measure('PostgreSQL', postgres, [SMALL, size, larger], await stage.place('postgres'), options)
}

/** Beside the rivals with as many waiting as all are measured with, and beside itself with fewer and more. */
async function* measure(
  store: string,
  rivals: readonly Loaded[],
  sizes: readonly number[],
  place: Place,
  { runs, quick }: SectionOptions,
): AsyncGenerator<Comparison> {
  const [, common = 0] = sizes
  const task = (contender: Loaded, size: number) => {
    const { push, drain } = LOADS[contender]
    const scale = quick ? 0.1 : 1
    return { measure: 'backlog', contender, size, push: push * scale, drain: drain * scale } as const
  }
  const tasks = [...sizes.map((size) => task('Millpond', size)), ...rivals.map((rival) => task(rival, common))]
  const all = await measured(tasks, Math.min(RUNS, runs), place)
  const own = (size: number, figure: string) => all[sizes.indexOf(size)]?.(figure) ?? MISSING

  yield {
    title: `${store}, with ${common.toLocaleString('en')} jobs waiting`,
    rows: FIGURES.map(({ figure, name }) => ({
      name,
      unit: 'jobs/s',
      ours: own(common, figure),
      rivals: rivals.map((rival, at) => ({ name: rival, figure: all[sizes.length + at]?.(figure) ?? MISSING })),
    })),
    notes: [store === 'PostgreSQL' ? TIDY : NOTE, `at most ${RUNS} runs`],
  }

  const [small = 0] = sizes
  const large = sizes.at(-1) ?? 0
  yield {
    title: `Millpond on ${store}: whether it slows down with the backlog`,
    own: `${large.toLocaleString('en')} waiting`,
    rows: [...FIGURES.filter(({ figure }) => figure !== 'fill'), ...LOOKED].map(({ figure, name }) => ({
      name,
      unit: isLook(figure) ? 'ms' : 'jobs/s',
      ours: own(large, figure),
      rivals: sizes
        .slice(0, -1)
        .map((size) => ({ name: `${size.toLocaleString('en')} waiting`, figure: own(size, figure) })),
      bar: isLook(figure)
        ? atMost(own(large, figure).median, SLOWEST_LOOK, ' ms')
        : store === 'PostgreSQL'
          ? atLeast(own(large, figure).median / own(small, figure).median, 0.8, ' ×')
          : undefined,
    })),
    notes: [],
  }
}
