/** `millpond top` */
import { setTimeout as pause } from 'node:timers/promises'
import { safeText } from '../../values/errors/safe-error.ts'
import { jsonText } from '../../web/answer.ts'
import { JSON_LINES, STORE } from '../arguments.ts'
import { type Opened, withStore } from '../open.ts'
import type { Terminal } from '../terminal.ts'
import { frameOf } from '../top/frame.ts'
import { linesOf, type Sample, SORTS, type Sort } from '../top/sample.ts'
import { Screen } from '../top/screen.ts'
import { defineVerb, EXIT } from '../verb.ts'

const EVERY = 2000

export const verb = defineVerb({
  name: 'top',
  summary: 'a live view: depth, rates, waits, failures, workers, limits',
  options: {
    every: { value: 'TIME', help: 'between two looks, 100ms or more; 2s unless given' },
    minutes: { value: 'COUNT', help: 'how far back the waits go, 1 to 60; 5 unless given' },
    sort: { value: 'BY', help: `${SORTS.join(', ')}; waiting unless given` },
    once: { help: 'shows one picture and ends, as it always does in a pipe' },
    ...STORE,
    ...JSON_LINES,
  },
  notes: 'Keys: q ends it, s sorts by another figure, j and k or the arrows scroll.',
  async run({ args, terminal, stop }) {
    const every = args.time('every', 100) ?? EVERY
    const minutes = args.whole('minutes', 1, 60) ?? 5
    const sort = args.choice('sort', SORTS) ?? 'waiting'
    const isOnce = args.flag('once') || args.flag('json') || terminal.isTTY?.out !== true
    return withStore(args, async (opened) => {
      const look = () => sampleOf(opened, minutes)
      if (!isOnce) {
        await watch({ terminal, look, stop, every, minutes, sort, store: opened.store.name })
        return EXIT.done
      }
      const before = await look()
      await sleep(every, stop)
      const now = await look()
      if (args.flag('json')) for (const line of linesOf(now, before)) terminal.out(`${jsonText(line)}\n`)
      else {
        const size = { columns: terminal.columns?.() ?? 80, rows: Number.MAX_SAFE_INTEGER }
        const clock = new Date().toLocaleTimeString('en-GB')
        const picture = {
          now,
          before,
          minutes,
          sort,
          ...size,
          clock,
          store: opened.store.name,
          skip: 0,
          hasKeys: false,
        }
        terminal.out(
          `${frameOf(picture)
            .map(({ text }) => text.trimEnd())
            .join('\n')}\n`,
        )
      }
      return EXIT.done
    })
  },
})

async function sampleOf({ pond, store }: Opened, minutes: number): Promise<Sample> {
  const [reports, workers] = await Promise.all([
    pond.stats({ minutes }),
    store.capabilities.workers ? pond.workers() : null,
  ])
  return { at: performance.now(), reports, workers }
}

const sleep = (ms: number, stop: AbortSignal): Promise<void> => pause(ms, undefined, { signal: stop }).catch(() => {})

interface Watch {
  terminal: Terminal
  look(): Promise<Sample>
  stop: AbortSignal
  every: number
  minutes: number
  sort: Sort
  store: string
}

/** Until the program is stopped, or q. */
async function watch({ terminal, look, stop, every, minutes, sort: first, store }: Watch): Promise<void> {
  const ended = new AbortController()
  const until = AbortSignal.any([stop, ended.signal])
  let now: Sample = await look()
  let before: Sample | undefined
  let trouble: string | undefined
  let [sort, skip] = [first, 0]
  const screen = new Screen(terminal)
  const draw = () => {
    const size = { columns: terminal.columns?.() ?? 80, rows: terminal.rows?.() ?? 24 }
    const clock = new Date().toLocaleTimeString('en-GB')
    const hasKeys = terminal.keys !== undefined
    screen.draw(frameOf({ now, before, store, clock, minutes, sort, skip, trouble, ...size, hasKeys }))
  }
  const forget = terminal.keys?.((key) => {
    if (key === 'q') return ended.abort()
    if (key === 's') sort = SORTS[(SORTS.indexOf(sort) + 1) % SORTS.length] ?? first
    if (key === 'j' || key === '\x1b[B') skip = Math.min(skip + 1, Math.max(0, now.reports.length - 1))
    if (key === 'k' || key === '\x1b[A') skip = Math.max(0, skip - 1)
    draw()
  })
  try {
    draw()
    while (!until.aborted) {
      await sleep(every, until)
      if (until.aborted) break
      try {
        const next = await look()
        ;[before, now, trouble] = [now, next, undefined]
      } catch (error) {
        trouble = safeText(error)
      }
      draw()
    }
  } finally {
    forget?.()
    screen.close()
  }
}
