/** What handlers of a process have asked the worker, until it answers. */
import { errorOf } from './error-message.ts'
import type { Asked, AskedName, Told } from './messages.ts'

export class Questions {
  readonly #open = new Map<number, PromiseWithResolvers<never>>()
  #last = 0

  /** @param send sends the question, by its number @throws what the worker answers */
  ask<Name extends AskedName>(send: (question: number) => void): Promise<Asked[Name]['told']> {
    const question = ++this.#last
    const answer = Promise.withResolvers<never>()
    this.#open.set(question, answer)
    send(question)
    return answer.promise
  }

  told({ question, answer, error }: Told): void {
    const open = this.#open.get(question)
    this.#open.delete(question)
    if (error !== null) open?.reject(errorOf(error))
    // The worker answers what was asked.
    else open?.resolve(answer as never)
  }
}
