/**
 * Pushes jobs that wait for others, or that are stored together or not at all: contract/redis/README.md, "push of a graph".
 *
 *   located ──stage──► held ──link──► linked ──decide──► committed ──► started
 *                        └──────────────┴──► aborted ──► removed
 *
 * What it learns on the way, such as a parent that went meanwhile, it cannot mend in what it has stored: it removes that, and begins again.
 */
import { randomBytes } from 'node:crypto'
import { isMillpondError, MillpondError } from '../../values/errors/errors.ts'
import type { NewJob, PushOutcome } from '../../values/jobs/records.ts'
import type { StoreContext } from './context.ts'
import { adoptAll, decide, finishIn, linkAll, linkBytes } from './links.ts'
import { kinOf } from './operations/relatives.ts'
import { whereAre } from './owners.ts'
import type { Partition } from './partition.ts'
import { answered, askEach, MAX_ITEMS_PER_CALL } from './per-partition.ts'
import { type Graph, homeOf, type Links, pushBy, pushToQueue } from './pusher.ts'
import { ID_BYTES, idBytes, idsBytes, idText } from './wire.ts'

/** Begins that may fail because somebody else changes the parents meanwhile. */
const MOST_TRIES = 100
const NOTHING: Buffer = Buffer.alloc(0)
/** Before the ids in a value of `parents`: the kind, the graph, how many links are open. */
const COUNT_BYTES = 3
const HEAD_BYTES = 1 + ID_BYTES + COUNT_BYTES
/** The kinds `c` and `r`. */
const CANCEL = 0x63
const RUN = 0x72

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
  /** Where in the call the jobs are. Of two with the same id, the first one is stored. */
  readonly #places = new Map<string, number>()
  readonly #graph: Graph
  /** Its id. */
  readonly #hex: string
  readonly #homes: Partition[] = []
  /** Parents that were there before. */
  #located: ReadonlyMap<string, Partition> = new Map()
  /** Of each job of the call, the places of its parents and children in the call. */
  readonly #parents: number[][] = []
  readonly #children: number[][] = []
  /** The ids of the jobs, one after the other. */
  readonly #ids: Buffer
  readonly #withins = new Set<string>()
  #mayBeCommitted = false

  constructor(context: StoreContext, jobs: readonly NewJob[], whole: boolean, facts: Facts) {
    this.#context = context
    this.#jobs = jobs
    this.#facts = facts
    for (const [at, { id, partOf: within }] of jobs.entries()) {
      if (!this.#places.has(id)) this.#places.set(id, at)
      if (within) this.#withins.add(within)
    }
    this.#graph = {
      id: randomBytes(ID_BYTES),
      home: this.#homeOf(jobs[0]),
      alone: false,
      whole,
      counts: new Map(),
      linksOf: (job) => this.#linksOf(job),
      partitions: new Set(),
      isHeld: false,
    }
    this.#hex = this.#graph.id.toString('hex')
    this.#ids = idsBytes(jobs)
  }

  /** @returns undefined: nothing was stored, and it is to begin again with the facts */
  async run(): Promise<PushOutcome[] | undefined> {
    try {
      await this.#plan()
      const outcomes = (await this.#stage()).map((outcome, at) => this.#asGiven(outcome, at))
      if (this.#graph.isHeld) return await this.#abort(undefined)
      if (!this.#agrees(outcomes)) return await this.#abort(undefined)
      if (this.#graph.whole && outcomes.some(isRefused)) return await this.#abort(this.#withheld(outcomes))
      if (this.#graph.alone) return await this.#replace(outcomes)
      if (!(await this.#link(outcomes))) return await this.#abort(undefined)
      if (await this.#decide()) await this.#start()
      else {
        const message = 'push: the jobs were stored too slowly, and removed by a sweep; nothing was stored'
        throw new MillpondError('StoreUnavailable', message)
      }
      return await this.#replace(outcomes)
    } catch (error) {
      if (!this.#mayBeCommitted) await this.#abort(undefined)
      throw error
    }
  }

  /** Where the answer is lost, whoever meets the jobs, or a sweep, goes by what was decided. */
  async #decide(): Promise<boolean> {
    const { id, home } = this.#graph
    try {
      this.#mayBeCommitted = true
      this.#mayBeCommitted = await decide(this.#context, id, home.part, 'committed')
      return this.#mayBeCommitted
    } catch (error) {
      if (isMillpondError(error, 'StoreFull') || isMillpondError(error, 'StoreBusy')) this.#mayBeCommitted = false
      throw error
    }
  }

  /** The parent of an orphan as the call named it. */
  #asGiven(outcome: PushOutcome, at: number): PushOutcome {
    if (outcome.parent === undefined) return outcome
    const { after = [], partOf: within = '' } = this.#jobs[at] ?? {}
    const given = [...after, within].find((id) => this.#standIn(id, at) === outcome.parent)
    return given === undefined ? outcome : { ...outcome, parent: given }
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
    if (replacing.length === 0) return outcomes
    const replaced = await pushBy(this.#context, replacing, { name: 'push' })
    const failed = replaced.find(({ error }) => error !== undefined)
    if (this.#graph.whole && failed?.error !== undefined) throw failed.error
    return outcomes.map((outcome) => (outcome.status === 'replaced' ? (replaced.shift() ?? outcome) : outcome))
  }

  /** Makes the queues known, finds the parents, and gathers the children. */
  async #plan(): Promise<void> {
    const { queues } = this.#context
    const names = [...new Set(this.#jobs.map(({ queue }) => queue))]
    await Promise.all(names.filter((name) => queues.known(name) === undefined).map((name) => queues.create(name)))
    for (const job of this.#jobs) this.#homes.push(this.#homeOf(job))
    for (const { queue, count } of this.#homes) this.#graph.counts.set(queue, count)
    const others: string[] = []
    let links = 0
    for (const [at, job] of this.#jobs.entries()) {
      if (this.#places.get(job.id) !== at) continue
      const own: number[] = []
      for (const id of this.#parentsOf(job, at)) {
        const parent = this.#placeBefore(id, at)
        if (parent === undefined) {
          others.push(id)
          continue
        }
        own.push(parent)
        const children = this.#children[parent]
        if (children === undefined) this.#children[parent] = [at]
        else children.push(at)
      }
      this.#parents[at] = own
      links += job.after?.length ?? 0
      if (job.partOf && this.#placeBefore(job.partOf, at) === undefined) others.push(this.#standIn(job.partOf, at))
    }
    this.#located = await whereAre(this.#context, others)
    const [home] = this.#homes
    if (home !== undefined) this.#graph.home = home
    const parts = new Set([...this.#homes, ...this.#located.values()].map(({ part }) => part))
    const isSmall = this.#jobs.length <= MAX_ITEMS_PER_CALL && links <= MAX_ITEMS_PER_CALL
    this.#graph.alone = parts.size === 1 && isSmall && this.#jobs.every(({ partOf }) => !partOf)
  }

  #homeOf(job: NewJob | undefined): Partition {
    const { queues } = this.#context
    const queue = job?.queue ?? ''
    const home = job && homeOf(queues.known(queue) ?? [], job)
    return home ?? queues.partition(queue, 0)
  }

  /** What stands for a job that is earlier in the call than this place; else the job itself. */
  #standIn(id: string, at: number): string {
    const { standIns } = this.#facts
    if (standIns.size === 0 || (this.#places.get(id) ?? at) >= at) return id
    return standIns.get(id) ?? id
  }

  #parentsOf({ after = [] }: NewJob, at: number): readonly string[] {
    if (after.length < 2 && this.#facts.standIns.size === 0) return after
    return [...new Set(after.map((id) => this.#standIn(id, at)))]
  }

  /** Where a parent of the job at this place is in the call, if it is to be stored with it. */
  #placeBefore(id: string, at: number): number | undefined {
    const { standIns, refused } = this.#facts
    const real = this.#standIn(id, at)
    const place = this.#places.get(real)
    if (place === undefined || place >= at) return undefined
    return standIns.has(real) || refused.has(real) ? undefined : place
  }

  /** Parents that are in the store already, and where; undefined: nowhere. */
  #parentsElsewhere(job: NewJob, at: number): { id: string; home: Partition | undefined }[] {
    const others = this.#parentsOf(job, at).filter((id) => this.#placeBefore(id, at) === undefined)
    return others.map((id) => ({ id, home: this.#isRefused(id, at) ? undefined : this.#located.get(id) }))
  }

  #linksOf(job: NewJob): Links {
    const at = this.#places.get(job.id) ?? 0
    const own = this.#homes[at]
    const inCall = this.#parents[at] ?? []
    const elsewhere = inCall.length === (job.after?.length ?? 0) ? [] : this.#parentsElsewhere(job, at)
    // The script finds that it does not know those that nobody knows.
    const isNear = ({ home }: { home: Partition | undefined }) => home === undefined || home.part === own?.part
    const near = elsewhere.filter(isNear)
    const far = elsewhere.filter((parent) => !isNear(parent))
    const parents = Buffer.allocUnsafe(HEAD_BYTES + (elsewhere.length + inCall.length) * ID_BYTES)
    parents[0] = job.onDead === 'run' ? RUN : CANCEL
    this.#graph.id.copy(parents, 1)
    parents.writeUIntBE(elsewhere.length + inCall.length, HEAD_BYTES - COUNT_BYTES, COUNT_BYTES)
    let end = HEAD_BYTES
    for (const { id } of [...near, ...far]) end += idBytes(id).copy(parents, end)
    for (const place of inCall) end += this.#ids.copy(parents, end, place * ID_BYTES, (place + 1) * ID_BYTES)
    const isOver = job.partOf ? this.#isOver(job.partOf, at) : false
    const ended = isOver && job.partOf ? idBytes(this.#standIn(job.partOf, at)) : NOTHING
    return { parents, children: this.#childrenOf(at), known: near.length, ended }
  }

  #childrenOf(at: number): Buffer {
    const children = this.#children[at]
    if (children === undefined) return NOTHING
    const pieces: Buffer[] = [Buffer.alloc(COUNT_BYTES)]
    for (const child of children) {
      pieces.push(this.#ids.subarray(child * ID_BYTES, (child + 1) * ID_BYTES), partBytes(this.#homes[child]))
    }
    return Buffer.concat(pieces)
  }

  /** It was to come before this place, and was not stored. */
  #isRefused(id: string, at: number): boolean {
    return this.#facts.refused.has(id) && (this.#places.get(id) ?? at) < at
  }

  /** Whether a job of `within` has ended, or is unknown. */
  #isOver(id: string, at: number): boolean {
    if (this.#placeBefore(id, at) !== undefined) return false
    const real = this.#standIn(id, at)
    return this.#facts.ended.has(real) || this.#isRefused(real, at) || !this.#located.has(real)
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

  /**
   * Whether all parents in the call were stored with their children. If not, the facts tell which were not. What waits for a job that is
   * not stored is not stored either, and leaves its key and its place to those behind it: what they are is seen in the next try.
   */
  #agrees(outcomes: readonly PushOutcome[]): boolean {
    const { standIns, refused } = this.#facts
    let agrees = true
    let isOpen = false
    for (const [own, at] of this.#places) {
      const outcome = outcomes[at]
      if (outcome === undefined) continue
      const isPushed = outcome.status === 'pushed'
      const isOrphan = outcome.status === 'orphan' || (isPushed && this.#isOrphan(at))
      isOpen ||= isPushed && isOrphan
      const isParent = this.#children[at] !== undefined || this.#withins.has(own)
      if (!isParent || standIns.has(own) || refused.has(own) || (isPushed && !isOrphan)) continue
      agrees = false
      if (isOrphan || (isRefused(outcome) && !isOpen)) refused.add(own)
      else if (!isRefused(outcome) && !(isOpen && this.#places.has(outcome.id))) standIns.set(own, outcome.id)
    }
    return agrees
  }

  /** It waits for a job of the call that is not stored. */
  #isOrphan(at: number): boolean {
    const { after = [], partOf: within } = this.#jobs[at] ?? {}
    return [...after, ...(within ? [within] : [])].some((id) => this.#isRefused(this.#standIn(id, at), at))
  }

  /** Links to parents in other partitions. @returns false: one of them has gone or ended meanwhile */
  async #link(outcomes: readonly PushOutcome[]): Promise<boolean> {
    const links: { home: Partition; link: Buffer }[] = []
    const parts: { job: NewJob; within: string; home: Partition | undefined }[] = []
    for (const [at, job] of this.#jobs.entries()) {
      if (outcomes[at]?.status !== 'pushed' || this.#places.get(job.id) !== at) continue
      const part = this.#homes[at]?.part ?? ''
      for (const { id, home } of this.#parentsElsewhere(job, at)) {
        if (home !== undefined && home.part !== part)
          links.push({ home, link: linkBytes(idBytes(id), idBytes(job.id), part) })
      }
      if (!job.partOf) continue
      const place = this.#placeBefore(job.partOf, at)
      const within = this.#standIn(job.partOf, at)
      parts.push({ job, within, home: place === undefined ? this.#located.get(within) : this.#homes[place] })
    }
    // They are located anew, and found to be gone.
    if ((await linkAll(this.#context, links, this.#graph.id)).size > 0) return false
    for (const [within, own] of Map.groupBy(parts, (part) => part.within)) {
      const jobs = own.map(({ job }) => job)
      const home = own[0]?.home
      if (home === undefined || !(await this.#adopt(within, home, jobs, outcomes))) return false
    }
    return true
  }

  /** Lets the children of a job wait for these as well. @returns false: it has ended */
  async #adopt(
    within: string,
    home: Partition,
    jobs: readonly NewJob[],
    outcomes: readonly PushOutcome[],
  ): Promise<boolean> {
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
        // A later job of the call was not there when this one was pushed, unless the call only named it again.
        const place = this.#places.get(idText(child)) ?? -1
        const at = outcomes[place]?.status === 'pushed' ? place : -1
        const own = jobs.filter((job) => at < (this.#places.get(job.id) ?? 0) && job.id !== idText(child))
        return own.map((job) => ({ id: job.id, home: this.#homeOf(job), child, part }))
      })
      const waiting = await adoptAll(this.#context, within, pairs, true)
      const open = pairs.filter((_, at) => waiting[at])
      const own = open.map(({ id, home, child, part }) => ({ home, link: linkBytes(idBytes(id), child, part) }))
      await linkAll(this.#context, own, this.#graph.id)
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
    const key = home.key(`graph:${this.#hex}`)
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

const partNames = new WeakMap<Partition, Buffer>()

/** Its name, with its length before it. */
function partBytes(partition: Partition | undefined): Buffer {
  if (partition === undefined) return NOTHING
  let bytes = partNames.get(partition)
  if (bytes === undefined) {
    const name = Buffer.from(partition.part)
    bytes = Buffer.concat([Buffer.from([name.length]), name])
    partNames.set(partition, bytes)
  }
  return bytes
}
