/** A surge through a queue: requests come faster than the workers can work, are answered at once, and none is lost. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Millpond } from '../pond/millpond.ts'
import type { Queue } from '../pond/queue.ts'
import { ProgressLine } from './progress.ts'
import type { Terminal } from './terminal.ts'
import { frameOf } from './top/frame.ts'
import type { Sample } from './top/sample.ts'
import { Screen } from './top/screen.ts'

export interface DemoOptions {
  jobs: number
  /** Milliseconds. */
  work: number
  workers: number
}

/** Times are in milliseconds. */
export interface DemoReport {
  accepted: number
  answerP50: number
  answerP95: number
  sent: number
  twice: number
  lost: number
  waitP50: number | undefined
  waitP95: number | undefined
  ms: number
}

/** Requests in a second. */
const RATE = 100
/** Milliseconds between two pictures. */
const EVERY = 500

/** @returns undefined: it was stopped */
export async function demo(
  options: DemoOptions,
  terminal: Terminal,
  stop: AbortSignal,
): Promise<DemoReport | undefined> {
  const folder = await mkdtemp(join(tmpdir(), 'millpond-demo-'))
  const pond = await Millpond.open(`sqlite:${join(folder, 'demo.db')}`)
  const view = viewOf(pond, terminal, options.jobs)
  try {
    return await surge(pond, options, view, stop)
  } finally {
    view.close()
    await pond.close({ timeout: 0 })
    await rm(folder, { recursive: true, force: true })
  }
}

async function surge(
  pond: Millpond,
  { jobs, work, workers }: DemoOptions,
  view: View,
  stop: AbortSignal,
): Promise<DemoReport | undefined> {
  const sent = new Map<string, number>()
  const queue: Queue<{ to: string }> = pond.queue('mails')
  queue.work(
    async (job, { signal }) => {
      await pause(work, undefined, { signal })
      sent.set(job.id, (sent.get(job.id) ?? 0) + 1)
    },
    { concurrency: workers },
  )
  const began = performance.now()
  const answers: number[] = []
  const ids: string[] = []
  const pushes: Promise<void>[] = []
  const request = async (number: number) => {
    const asked = performance.now()
    const { id } = await queue.push({ to: `reader-${number}@example.org` })
    ids.push(id)
    answers.push(performance.now() - asked)
  }
  for (let at = 0; at < jobs && !stop.aborted; at++) {
    // By the clock, so that a slow tick is made up for.
    const early = began + (at * 1000) / RATE - performance.now()
    if (early > 0) await pause(early)
    pushes.push(request(at))
    await view.show(sent.size)
  }
  await Promise.all(pushes)
  while (sent.size < ids.length && !stop.aborted) {
    await pause(EVERY / 5)
    await view.show(sent.size)
  }
  if (stop.aborted) return undefined
  const ms = performance.now() - began
  const { wait } = await queue.stats({ minutes: 60 })
  const inOrder = answers.toSorted((a, b) => a - b)
  const at = (share: number) => inOrder[Math.min(inOrder.length - 1, Math.floor(inOrder.length * share))] ?? 0
  return {
    ...{ accepted: ids.length, answerP50: at(0.5), answerP95: at(0.95), ms },
    sent: sent.size,
    twice: [...sent.values()].filter((times) => times > 1).length,
    lost: ids.filter((id) => !sent.has(id)).length,
    ...{ waitP50: wait.p50, waitP95: wait.p95 },
  }
}

interface View {
  show(sent: number): Promise<void>
  close(): void
}

/** What `top` shows, or in a pipe a line now and then. */
function viewOf(pond: Millpond, terminal: Terminal, jobs: number): View {
  const began = performance.now()
  if (terminal.isTTY?.out !== true) {
    const line = new ProgressLine(terminal, 'mails sent')
    const show = (sent: number) => {
      const rate = (sent / Math.max(1, performance.now() - began)) * 1000
      line.update({ done: sent, total: jobs, rate, left: null })
    }
    return { show: async (sent) => show(sent), close: () => line.clear() }
  }
  const screen = new Screen(terminal)
  let before: Sample | undefined
  let now: Sample | undefined
  const show = async () => {
    if (now !== undefined && performance.now() - now.at < EVERY) return
    const [reports, workers] = await Promise.all([pond.stats(), pond.workers()])
    ;[before, now] = [now, { at: performance.now(), reports, workers }]
    const size = { columns: terminal.columns?.() ?? 80, rows: terminal.rows?.() ?? 24 }
    const clock = new Date().toLocaleTimeString('en-GB')
    screen.draw(
      frameOf({ now, before, store: 'sqlite', clock, minutes: 5, sort: 'waiting', skip: 0, ...size, hasKeys: false }),
    )
  }
  return { show, close: () => screen.close() }
}
