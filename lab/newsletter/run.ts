/** Plays one variant: start, load, SIGKILL and restart in the middle, wait for the mails, verify. */
import { setTimeout } from 'node:timers/promises'
import { Child } from '../child.ts'
import { Mailbox } from './mailbox.ts'
import { isMessage, type Outcome } from './messages.ts'
import { elapsed, type Progress } from './progress.ts'
import { KILL_AT, LEASE, MAIL_TAKES, RATE } from './settings.ts'
import type { Variant } from './variants.ts'
import { type Figures, verify } from './verify.ts'

/** What a run looks like at a moment; the progress display draws it. */
export interface Scene {
  /** `performance.now()` of the first request; null before it. */
  startedAt: number | null
  requests: number
  sent: number
  accepted: number
  failed: number
  waiting: number
  running: number
  mails: number
}

export interface Played extends Figures {
  variant: Variant
  /** From the first request to the last mail, in ms. */
  took: number
  /** How far behind its schedule the load generator ever was, in ms. */
  behind: number
  /** From the SIGKILL until the next process was up, in ms; null without one. */
  downFor: number | null
}

export async function play(variant: Variant, duration: number, folder: string, progress: Progress): Promise<Played> {
  const mailbox = new Mailbox(folder)
  const scene: Scene = {
    startedAt: null,
    requests: (duration / 1000) * RATE,
    ...{ sent: 0, accepted: 0, failed: 0, waiting: 0, running: 0, mails: 0 },
  }
  const counting = setInterval(() => {
    scene.mails = mailbox.count()
  }, 200)
  progress.begin(scene)
  try {
    const { outcomes, ...rest } = await perform(variant, duration, folder, scene, progress)
    return { variant, ...verify(outcomes, mailbox.recipients()), ...rest }
  } finally {
    clearInterval(counting)
    scene.mails = mailbox.count()
    progress.end()
  }
}

type Performance = Pick<Played, 'took' | 'behind' | 'downFor'> & { outcomes: Outcome[] }

async function perform(
  variant: Variant,
  duration: number,
  folder: string,
  scene: Scene,
  progress: Progress,
): Promise<Performance> {
  const loaded = Promise.withResolvers<{ outcomes: Outcome[]; behind: number }>()
  /** How many reports of the backlog came: one from before the end of the load must not be taken for the last. */
  let reports = 0

  const hear = (message: unknown) => {
    if (!isMessage(message)) return
    const { kind, ...facts } = message
    if (kind === 'load' || kind === 'backlog') Object.assign(scene, facts)
    if (kind === 'backlog') reports++
    if (message.kind === 'done') loaded.resolve(message)
    if (message.kind === 'returned') {
      progress.event(
        'good',
        `${elapsed(scene)}: the dead worker's lease is over, ${message.count} mails are taken up again`,
      )
    }
  }
  const failed = Promise.withResolvers<never>()
  const start = async (name: string, ...args: string[]) => {
    const child = await Child.start(new URL(`${name}.ts`, import.meta.url), args, hear)
    child.ended.catch(failed.reject)
    return child
  }

  async function act(): Promise<Performance> {
    let server = await start('server', variant.key, folder, '0')
    let worker = variant.key === 'millpond' ? await start('worker', folder) : undefined
    const port = String(server.port)

    async function killAndRestart(): Promise<number | null> {
      if (variant.kills === 'nothing') return null
      await setTimeout(duration * KILL_AT)
      const killedAt = performance.now()
      const held = scene.running + scene.waiting
      if (variant.kills === 'server') {
        await server.kill()
        progress.event('bad', `${elapsed(scene)}: kill -9 of the server, which holds ${held} mails in its memory`)
        server = await start('server', variant.key, folder, port)
      } else {
        await worker?.kill()
        progress.event('bad', `${elapsed(scene)}: kill -9 of the worker, in the middle of ${scene.running} mails`)
        worker = await start('worker', folder)
      }
      progress.event('good', `${elapsed(scene)}: another ${variant.kills} is up`)
      return performance.now() - killedAt
    }

    const load = await start('load', port, String(scene.requests))
    const startedAt = performance.now()
    scene.startedAt = startedAt
    const [{ outcomes, behind }, downFor] = await Promise.all([loaded.promise, killAndRestart()])
    await load.kill()

    // One report may have been under way already.
    const stale = reports + 1
    const deadline = performance.now() + 3 * MAIL_TAKES + 2 * LEASE
    while (reports <= stale || scene.waiting + scene.running > 0) {
      if (performance.now() > deadline) {
        progress.event('bad', `${elapsed(scene)}: gave up waiting for the last mails`)
        break
      }
      await setTimeout(50)
    }
    const took = performance.now() - startedAt
    await Promise.all([server.kill(), worker?.kill()])
    return { outcomes, took, behind, downFor }
  }

  return Promise.race([act(), failed.promise])
}
