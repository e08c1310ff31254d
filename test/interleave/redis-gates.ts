/** Lets the calls of several Redis clients to their server go one at a time, in an order that a path chooses. */
import type { Calls } from '../../src/stores/redis/connection/calls.ts'
import type { Path } from './orders.ts'

interface Waiting {
  session: number
  go(): void
}

/** Other scripts only look, or have nothing to do with graphs. */
const OF_GRAPHS: ReadonlySet<string> = new Set(
  'stage link adopt relatives decide decided settle settled complete fail cancel remove sweep locate push'.split(' '),
)

type Call = (...args: never[]) => Promise<unknown>

export class Gates {
  readonly #raced: ReadonlySet<string>
  readonly #waiting: Waiting[] = []
  /** By the calls' owner. */
  readonly #sessions = new WeakMap<object, number>()
  #racing = false
  #underWay = 0
  #races = 0
  #kept: { script: Call; command: Call } | undefined
  /** Which session begins now, so that its calls are known as its own. */
  #starting: number | undefined

  /** @param raced the scripts; the calls of others go at once */
  constructor(raced: ReadonlySet<string> = OF_GRAPHS) {
    this.#raced = raced
  }

  /** All calls of all stores go through here from now on. */
  install(calls: typeof Calls): void {
    const prototype = calls.prototype as unknown as { script: Call; command: Call }
    this.#kept = { script: prototype.script, command: prototype.command }
    const gates = this
    for (const name of ['script', 'command'] as const) {
      const call = prototype[name]
      prototype[name] = async function (this: object, ...args: never[]) {
        const race = gates.#races
        await gates.#pass(this, String(args[0]))
        try {
          return await call.apply(this, args)
        } finally {
          gates.#over(race)
        }
      }
    }
  }

  remove(calls: typeof Calls): void {
    if (this.#kept !== undefined) Object.assign(calls.prototype, this.#kept)
  }

  async #pass(calls: object, name: string): Promise<void> {
    if (!this.#racing) return
    if (this.#starting !== undefined) this.#sessions.set(calls, this.#starting)
    if (!this.#raced.has(name)) {
      this.#underWay++
      return
    }
    const session = this.#sessions.get(calls) ?? 0
    await new Promise<void>((go) => this.#waiting.push({ session, go }))
  }

  #over(race: number): void {
    if (this.#racing && race === this.#races) this.#underWay--
  }

  /**
   * @param sessions each of a store of its own
   * @param deaths of each session after how many calls its client is no more
   */
  readonly race = async (
    path: Path,
    sessions: readonly (() => Promise<unknown>)[],
    deaths: readonly number[] = [],
  ): Promise<PromiseSettledResult<unknown>[]> => {
    this.#racing = true
    this.#races++
    this.#underWay = 0
    const settled: PromiseSettledResult<unknown>[] = []
    let open = sessions.length
    for (const [session, run] of sessions.entries()) {
      this.#starting = session
      void Promise.allSettled([run()]).then(([outcome]) => {
        if (outcome !== undefined) settled[session] = outcome
      })
      await this.#quiet()
      this.#starting = undefined
    }
    const calls = sessions.map(() => 0)
    const isDead = (session: number) => (calls[session] ?? 0) >= (deaths[session] ?? Number.POSITIVE_INFINITY)
    for (;;) {
      open = sessions.filter((_, at) => settled[at] === undefined && !isDead(at)).length
      const able = [...new Set(this.#waiting.map(({ session }) => session))]
        .filter((session) => !isDead(session))
        .sort()
      if (open === 0 && able.length === 0) break
      // Calls of one session come at once, so a path may want one that is not there this time.
      const chosen = able.length === 0 ? undefined : (path.choose(able) ?? able[0])
      const at = this.#waiting.findIndex(({ session }) => session === chosen)
      const [next] = at < 0 ? [] : this.#waiting.splice(at, 1)
      if (next !== undefined && chosen !== undefined) {
        calls[chosen] = (calls[chosen] ?? 0) + 1
        this.#underWay++
        next.go()
      }
      await this.#quiet()
    }
    this.#racing = false
    // Those of the dead never go.
    this.#waiting.length = 0
    return settled
  }

  /** Until all calls that went are answered, and what follows from the answers is waiting. */
  async #quiet(): Promise<void> {
    do for (let turn = 0; turn < 4; turn++) await new Promise<void>((over) => setImmediate(over))
    while (this.#underWay > 0)
  }
}
