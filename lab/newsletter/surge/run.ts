/** One variant under the published surge: who was answered and how fast, which mails went out, and what a signal in the middle cost. */
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../../test/servers/ports.ts'
import { Child } from '../../child.ts'
import { peakMemory } from '../../cpu.ts'
import { curveOf, mean } from '../../statistics.ts'
import { Mailbox } from '../mailbox.ts'
import { type Outcome as Answer, isMessage } from '../messages.ts'
import { LEASE, MAIL_TAKES } from '../settings.ts'
import { verify } from '../verify.ts'
import { Program } from './program.ts'
import type { Surge } from './variants.ts'

/** Of the load, in requests/s: as in the other variants of the experiment. */
const RATE = 100
const LOOK = 250

export interface Outcome {
  requests: number
  accepted: number
  /** Why the others were not, with their number. */
  failures: Record<string, number>
  /** Over all requests, those that were given up included, in ms. */
  mean: number
  /** Of the accepted ones; null when there are none. */
  p50: number | null
  p95: number | null
  p99: number | null
  curve: [share: number, ms: number][]
  mails: number
  /** Accepted and without a mail when nobody waited any longer. */
  unsent: number
  twice: number
  /** Accepted mails that are not out, by seconds since the first request. */
  backlog: [seconds: number, mails: number][]
  /** From the first request to the last mail, in seconds. */
  took: number
  memory: number
  /** How far the load generator ever was behind its schedule, in ms. */
  behind: number
}

export interface Timing {
  /** Of the load, in seconds. */
  seconds: number
  /** From the first request to the signal, in seconds. */
  signalAt: number
}

export async function run(surge: Surge, folder: string, { seconds, signalAt }: Timing): Promise<Outcome> {
  const mailbox = new Mailbox(folder)
  const port = await freePort()
  const service = surge.service === undefined ? undefined : { port: await freePort() }
  const place = { folder, port, service: service?.port ?? 0 }
  const started: Program[] = []
  const start = async (command: Parameters<typeof Program.start>[0] | undefined) => {
    if (command === undefined) return undefined
    const program = await Program.start(command)
    started.push(program)
    return program
  }
  const loaded = Promise.withResolvers<{ answers: Answer[]; behind: number }>()
  const count = { accepted: 0 }
  let load: Child | undefined
  try {
    await start(surge.service?.(place))
    let worker = await start(surge.worker?.(place))
    let server = await start(surge.server(place, 'first'))
    load = await Child.start(
      new URL('../load.ts', import.meta.url),
      [String(port), String(seconds * RATE)],
      (message) => {
        if (!isMessage(message)) return
        if (message.kind === 'load') count.accepted = message.accepted
        if (message.kind === 'done') loaded.resolve({ answers: message.outcomes, behind: message.behind })
      },
    )
    const began = performance.now()
    const elapsed = () => (performance.now() - began) / 1000
    const backlog: Outcome['backlog'] = []
    let memory = 0
    let mails = 0
    let changed = elapsed()
    const look = () => {
      const now = mailbox.count()
      if (now > mails) changed = elapsed()
      mails = now
      memory = Math.max(memory, peakMemory(server?.pid) || 0)
      backlog.push([elapsed(), count.accepted - mails])
    }
    const looking = setInterval(look, LOOK)
    try {
      const signalled = async () => {
        if (surge.signal === undefined) return
        await sleep(signalAt * 1000)
        await Promise.all([server?.end(surge.signal), worker?.end(surge.signal)])
        ;[worker, server] = await Promise.all([start(surge.worker?.(place)), start(surge.server(place, 'second'))])
      }
      const [{ answers, behind }] = await Promise.all([loaded.promise, signalled()])
      const accepted = answers.filter(({ status }) => typeof status === 'number' && status >= 200 && status < 300)
      const still = surge.awaited ? (MAIL_TAKES + (surge.leases ? LEASE : 0) + 3000) / 1000 : 0
      changed = Math.max(changed, elapsed())
      while (mailbox.count() < accepted.length && elapsed() < changed + still) await sleep(LOOK / 2)
      // As many mails as were accepted: yet some may be doubled, and others still to come.
      let figures = verify(answers, mailbox.recipients())
      while (figures.lost > 0 && elapsed() < changed + still) {
        await sleep(LOOK)
        figures = verify(answers, mailbox.recipients())
      }
      look()
      const trouble = started.flatMap((program) => program.trouble ?? [])
      if (trouble.length > 0) throw new Error(`a process ended by itself (${trouble.join(', ')})`)
      return {
        ...{ requests: figures.requests, accepted: figures.accepted, failures: figures.failures },
        mean: mean(answers.map(({ ms }) => ms)),
        ...{ p50: figures.p50, p95: figures.p95, p99: figures.p99 },
        curve: curveOf(accepted.map(({ ms }) => ms)),
        ...{ mails: figures.mails, unsent: figures.lost, twice: figures.extra },
        ...{ backlog, took: changed, memory: memory || Number.NaN, behind },
      }
    } finally {
      clearInterval(looking)
    }
  } finally {
    await load?.stop()
    await Promise.all(started.map((program) => program.stop()))
  }
}
