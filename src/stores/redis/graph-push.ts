/**
 * Pushes jobs that wait for others, or that are stored together or not at all: contract/redis/README.md, "push of a graph".
 *
 *   located ──stage──► held ──link──► linked ──decide──► committed ──► started
 *                        └──────────────┴──► aborted ──► removed
 *
 * What it learns on the way, such as a parent that went meanwhile, it cannot mend in what it has stored: it removes that, and begins again.
 */
import { randomBytes } from 'node:crypto'
import type { NewJob, PushOutcome } from '../../store.ts'
import { MillpondError } from '../../values/errors.ts'
import type { StoreContext } from './context.ts'
import { adoptAll, decide, finishIn, linkAll, linkBytes } from './links.ts'
import { kinOf } from './operations/relatives.ts'
import { whereAre } from './owners.ts'
import type { Partition } from './partition.ts'
import { answered, askEach, MAX_ITEMS_PER_CALL } from './per-partition.ts'
import { type Graph, homeOf, type Parents, pushBy, pushToQueue } from './pusher.ts'
import { ID_BYTES, idBytes, idText } from './wire.ts'

/** Begins that may fail because somebody else changes the parents meanwhile. */
const MOST_TRIES = 100

/** What was found out so far. */
interface Facts {
  /** Jobs that stand for others of the call. */
  standIns: Map<string, string>
  /** Jobs of the call that were not stored. */
  refused: Set<string>
  /** Jobs that have ended, of `within`. */
  ended: Set<string>
}

export async function pushGraph(
  context: StoreContext,
  jobs: readonly NewJob[],
  whole: boolean,
): Promise<PushOutcome[]> {
  const facts: Facts = { standIns: new Map(), refused: new Set(), ended: new Set() }
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const outcomes = await new GraphPush(context, jobs, whole, facts).run()
    if (outcomes !== undefined) return outcomes
  }
  throw new MillpondError('StoreBusy', 'push: the parents of the jobs kept changing; nothing was stored')
}

class GraphPush {
  readonly #context: StoreContext
  readonly #jobs: readonly NewJob[]
  readonly #facts: Facts
  /** Where in the call the jobs are. */
  readonly #places: ReadonlyMap<string, number>
  readonly #graph: Graph
  /** Parents that were there before. */
  #located: ReadonlyMap<string, Partition> = new Map()

  constructor(context: StoreContext, jobs: readonly NewJob[], whole: boolean, facts: Facts) {
    this.#context = context
    this.#jobs = jobs
    this.#facts = facts
    // Of two with the same id, the first one is stored.
    this.#places = new Map(jobs.map(({ id }, at) => [id, at] as const).reverse())
    this.#graph = {
      id: randomBytes(ID_BYTES),
      home: this.#homeOf(jobs[0]),
      alone: false,
      whole,
      parentsOf: (job, partition) => this.#parentsOf(job, partition),
      partitions: new Set(),
      isHeld: false,
    }
  }

  /** @returns undefined: nothing was stored, and it is to begin again with the facts */
  async run(): Promise<PushOutcome[] | undefined> {
    try {
      await this.#plan()
      const outcomes = (await this.#stage()).map((outcome) => this.#asGiven(outcome))
      if (this.#graph.isHeld) return await this.#abort(undefined)
      if (this.#graph.whole && outcomes.some(isRefused))
        return await this.#abort(this.#withheld(this.#withOrphans(outcomes)))
      if (this.#graph.alone) return await this.#replace(outcomes)
      if (!this.#agrees(outcomes) || !(await this.#link(outcomes))) return await this.#abort(undefined)
      if (await decide(this.#context, this.#graph.id, this.#graph.home.part, 'committed')) await this.#start()
      else {
        const message = 'push: the jobs were stored too slowly, and removed by a sweep; nothing was stored'
        throw new MillpondError('StoreUnavailable', message)
      }
      return await this.#replace(outcomes)
    } catch (error) {
      await this.#abort(undefined)
      throw error
    }
  }

  /** The parent of an orphan as the call named it. */
  #asGiven(outcome: PushOutcome): PushOutcome {
    const [given] = [...this.#facts.standIns].find(([, id]) => id === outcome.parent) ?? []
    return given === undefined ? outcome : { ...outcome, parent: given }
  }

  /** No script knew what became of jobs elsewhere. */
  #withOrphans(outcomes: readonly PushOutcome[]): PushOutcome[] {
    const notStored = new Set<string>()
    return outcomes.map((given, at) => {
      const id = this.#jobs[at]?.id ?? given.id
      const waitsFor = [...(this.#jobs[at]?.after ?? []), this.#jobs[at]?.within ?? '']
      const parent = given.status === 'pushed' ? waitsFor.find((each) => notStored.has(each)) : undefined
      const outcome: PushOutcome = parent === undefined ? given : { status: 'orphan', id, parent }
      if (isRefused(outcome) && this.#places.get(id) === at) notStored.add(id)
      return outcome
    })
  }

  /** What is answered where nothing is stored. */
  #withheld(outcomes: readonly PushOutcome[]): PushOutcome[] {
    const wouldBe = new Set(outcomes.flatMap(({ status, id }) => (status === 'pushed' ? [id] : [])))
    return outcomes.map((outcome, at) =>
      outcome.status === 'replaced' || (wouldBe.has(outcome.id) && !isRefused(outcome))
        ? { status: 'withheld', id: this.#jobs[at]?.id ?? outcome.id }
        : outcome,
    )
  }

  /** What a push replaces is replaced once the others are stored. */
  async #replace(outcomes: PushOutcome[]): Promise<PushOutcome[]> {
    const replacing = this.#jobs.filter((_, at) => outcomes[at]?.status === 'replaced')
    if (replacing.length > 0) await pushBy(this.#context, replacing, { name: 'push' })
    return outcomes
  }

  /** Makes the queues known, and finds the parents. */
  async #plan(): Promise<void> {
    const { queues } = this.#context
    const names = [...new Set(this.#jobs.map(({ queue }) => queue))]
    await Promise.all(names.filter((name) => queues.known(name) === undefined).map((name) => queues.create(name)))
    const others = this.#jobs.flatMap((job, at) =>
      this.#waitsFor(job).filter((id) => !this.#isBefore(id, at) && !this.#facts.refused.has(id)),
    )
    this.#located = await whereAre(this.#context, others)
    this.#graph.home = this.#homeOf(this.#jobs[0])
    const homes = new Set(this.#jobs.map((job) => this.#homeOf(job)))
    for (const home of this.#located.values()) homes.add(home)
    const links = this.#jobs.reduce((sum, { after = [] }) => sum + after.length, 0)
    const isSmall = this.#jobs.length <= MAX_ITEMS_PER_CALL && links <= MAX_ITEMS_PER_CALL
    this.#graph.alone = homes.size === 1 && isSmall && this.#jobs.every(({ within }) => !within)
  }

  #homeOf(job: NewJob | undefined): Partition {
    const { queues } = this.#context
    const queue = job?.queue ?? ''
    const home = job && homeOf(queues.known(queue) ?? [], job)
    return home ?? queues.partition(queue, 0)
  }

  /** Parents, and the job of `within`. */
  #waitsFor({ after = [], within }: NewJob): string[] {
    return [...after, ...(within ? [within] : [])].map((id) => this.#facts.standIns.get(id) ?? id)
  }

  #isBefore(id: string, at: number): boolean {
    return (this.#places.get(id) ?? at) < at
  }

  /** Where a parent of the job at this place is; undefined: it is unknown. */
  #homeOfParent(id: string, at: number): Partition | undefined {
    if (this.#facts.refused.has(id)) return undefined
    return this.#isBefore(id, at) ? this.#homeOf(this.#jobs[this.#places.get(id) ?? 0]) : this.#located.get(id)
  }

  #parentsOf(job: NewJob, { part }: Partition): Parents {
    const at = this.#places.get(job.id) ?? 0
    const all = [...new Set(this.#waitsFor({ ...job, within: '' }))]
    // The script finds that it does not know those that nobody knows.
    const isLocal = (id: string) => (this.#homeOfParent(id, at)?.part ?? part) === part
    const locals = all.filter(isLocal)
    const ids = [...locals, ...all.filter((id) => !isLocal(id))]
    const [within] = job.within ? this.#waitsFor({ ...job, after: [] }) : []
    const isGone =
      within !== undefined && (this.#facts.ended.has(within) || this.#homeOfParent(within, at) === undefined)
    return { ids, locals: locals.length, missing: isGone ? within : null }
  }

  /** A part that failed may hold jobs that nobody could link: then nothing is stored. @throws its error */
  async #stage(): Promise<PushOutcome[]> {
    const script = { name: 'stage' as const, graph: this.#graph }
    const answers = answered(
      await askEach(
        this.#jobs,
        ({ queue }) => queue,
        (queue, own) => pushToQueue(this.#context, script, queue, own),
      ),
    )
    return answers.map((answer, at): PushOutcome => {
      const id = this.#jobs[at]?.id ?? ''
      if (answer instanceof MillpondError) {
        if (answer.code !== 'NotSupported') throw answer
        return { status: 'failed', id, error: answer }
      }
      if (answer === undefined) throw new MillpondError('StoreFailed', 'push: Redis gave no answer for a job')
      return answer
    })
  }

  /** Whether what was stored is right, now that all outcomes are known. If not, the facts tell what was not known before. */
  #agrees(outcomes: readonly PushOutcome[]): boolean {
    const { standIns, refused } = this.#facts
    const known = new Map(standIns)
    const notStored = new Set<string>()
    for (const [own, at] of this.#places) {
      const outcome = outcomes[at]
      if (outcome === undefined || isRefused(outcome)) notStored.add(own)
      else if (outcome.id !== own) standIns.set(own, outcome.id)
    }
    let agrees = true
    for (const [own, at] of this.#places) {
      const job = this.#jobs[at]
      const outcome = outcomes[at]
      if (job === undefined || outcome === undefined) continue
      for (const id of [...(job.after ?? []), ...(job.within ? [job.within] : [])]) {
        if (!this.#isBefore(id, at)) continue
        const isPushed = outcome.status === 'pushed'
        if (notStored.has(id) && isPushed) {
          refused.add(id)
          agrees = false
        }
        // In one partition, the script has seen what stands for it.
        const isFar =
          this.#homeOf(this.#jobs[this.#places.get(id) ?? 0]).part !==
          this.#homeOf(this.#jobs[this.#places.get(own) ?? 0]).part
        const isNews = standIns.has(id) && known.get(id) !== standIns.get(id)
        if (isNews && ((isPushed && isFar) || outcome.parent === id)) agrees = false
      }
    }
    return agrees
  }

  /** Links to parents in other partitions. @returns false: one of them has gone or ended meanwhile */
  async #link(outcomes: readonly PushOutcome[]): Promise<boolean> {
    const links: { home: Partition; link: Buffer }[] = []
    for (const [at, job] of this.#jobs.entries()) {
      if (outcomes[at]?.status !== 'pushed' || this.#places.get(job.id) !== at) continue
      const { part } = this.#homeOf(job)
      const { ids, locals } = this.#parentsOf(job, this.#homeOf(job))
      for (const id of ids.slice(locals)) {
        const home = this.#homeOfParent(id, at)
        if (home !== undefined) links.push({ home, link: linkBytes(idBytes(id), idBytes(job.id), part) })
      }
    }
    const unknown = await linkAll(this.#context, links)
    for (const id of unknown) if (this.#places.has(id)) this.#facts.refused.add(id)
    if (unknown.size > 0) return false
    const parts = this.#jobs.filter(({ within }, at) => within && outcomes[at]?.status === 'pushed')
    for (const [within, own] of Map.groupBy(parts, (job) => this.#waitsFor({ ...job, after: [] })[0] ?? '')) {
      if (!(await this.#adopt(within, own))) return false
    }
    return true
  }

  /** Lets the children of a job wait for these as well. @returns false: it has ended */
  async #adopt(within: string, jobs: readonly NewJob[]): Promise<boolean> {
    const home = this.#homeOfParent(within, this.#jobs.length)
    if (home === undefined) return false
    const look = async (from: Buffer | '') => {
      const [kin] = await kinOf(this.#context, home, [within], from)
      const isLive = kin && kin.state !== 'done' && kin.state !== 'dead' && kin.state !== 'cancelled'
      if (!isLive) this.#facts.ended.add(within)
      return isLive ? kin : undefined
    }
    for (let from: Buffer | '' = ''; ; ) {
      const kin = await look(from)
      if (kin === undefined) return false
      const pairs = kin.links.flatMap(({ child, part }) => {
        const at = this.#places.get(idText(child)) ?? -1
        // A later job of the call was not there when this one was pushed.
        const own = jobs.filter((job) => at < (this.#places.get(job.id) ?? 0) && job.id !== idText(child))
        return own.map((job) => ({ id: job.id, home: this.#homeOf(job), child, part }))
      })
      const waiting = await adoptAll(this.#context, within, pairs, true)
      const open = pairs.filter((_, at) => waiting[at])
      const own = open.map(({ id, home, child, part }) => ({ home, link: linkBytes(idBytes(id), child, part) }))
      await linkAll(this.#context, own)
      const adopted = await adoptAll(this.#context, within, open, false)
      // Its own end may have been told to the child already.
      if ([...waiting, ...adopted].includes(false) && (await look('')) === undefined) return false
      from = kin.from
      if (from.length === 0) return true
    }
  }

  /** It is decided: what cannot be started now, a sweep starts. */
  async #start(): Promise<void> {
    const { id, home, partitions } = this.#graph
    const starts = await Promise.allSettled(
      [...partitions].map((partition) => finishIn(this.#context, partition, id, true)),
    )
    if (starts.some(({ status }) => status === 'rejected')) return
    const key = home.key(`graph:${id.toString('hex')}`)
    await this.#context.calls.command(home.tag, 'del', key).catch(() => undefined)
  }

  /** Nothing starts that was not decided: what cannot be removed now, a sweep removes. */
  async #abort<T>(answer: T): Promise<T> {
    const { id, partitions, alone } = this.#graph
    if (!alone) {
      await Promise.allSettled([...partitions].map((partition) => finishIn(this.#context, partition, id, false)))
    }
    return answer
  }
}

const isRefused = ({ status }: PushOutcome): boolean => status === 'full' || status === 'orphan' || status === 'failed'
