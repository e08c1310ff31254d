/** Many endings of one request. An ending that cannot be stored keeps no other from it: contract/http.md, "Settle". */
import { splitting } from '../batch/splitting.ts'
import { isMillpondError, MillpondError } from '../values/errors/errors.ts'
import { problemOf } from '../web/problem.ts'

interface Problem {
  id: string
  code: string
  detail: string
  retryable: boolean
}

/** An ending that no store is given. */
class Unsendable {
  readonly id: string
  readonly why: MillpondError

  constructor(id: string, why: MillpondError) {
    this.id = id
    this.why = why
  }
}

/** @returns what it makes, or its error in its place @throws errors that are not of Millpond */
export function endingOf<Item extends { id: string }>(id: string, make: (id: string) => Item): Item | Unsendable {
  try {
    return make(id)
  } catch (error) {
    if (!isMillpondError(error)) throw error
    return new Unsendable(id, error)
  }
}

export class Settlement {
  /** Of each call of `tell`. */
  readonly #problems: Problem[][] = []
  readonly #onError: (error: MillpondError) => void
  #isAnyTaken = false
  #passing: MillpondError | undefined

  /** @param onError called with errors of the service */
  constructor(onError: (error: MillpondError) => void) {
    this.#onError = onError
  }

  /** In the order of the endings. */
  get problems(): Problem[] {
    return this.#problems.flat()
  }

  /** @returns an outcome per ending; `error`: `problems` has it */
  async tell<Item extends { id: string }, Outcome extends string>(
    endings: readonly (Item | Unsendable)[],
    call: (items: readonly Item[]) => Promise<readonly (Outcome | MillpondError)[]>,
  ): Promise<(Outcome | 'error')[]> {
    const problems: Problem[] = []
    this.#problems.push(problems)
    const items = endings.filter((ending): ending is Item => !(ending instanceof Unsendable))
    const outcomes = (items.length === 0 ? [] : await splitting(items, call, 'settling jobs')).values()
    return endings.map((ending) => {
      const outcome = ending instanceof Unsendable ? ending.why : (outcomes.next().value ?? unanswered())
      if (outcome instanceof MillpondError) {
        problems.push(this.#problemOf(ending.id, outcome))
        return 'error'
      }
      this.#isAnyTaken = true
      return outcome
    })
  }

  /** @throws what failed, where nothing was stored and the same request may succeed later */
  assertTaken(): void {
    if (!this.#isAnyTaken && this.#passing !== undefined) throw this.#passing
  }

  #problemOf(id: string, error: MillpondError): Problem {
    const { problem, isReported } = problemOf(error, 0)
    if (problem.status === 503) this.#passing ??= error
    if (isReported) this.#onError(error)
    return { id, code: error.code, detail: problem.detail, retryable: problem.status === 503 }
  }
}

const unanswered = (): MillpondError => new MillpondError('StoreFailed', 'the store has not answered for an ending')
