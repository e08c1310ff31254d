/** What handlers of a process have asked the worker, until it answers. */
import type { ParentJob } from '../../values/jobs/parent-jobs.ts'
import { errorOf } from './error-message.ts'
import type { Parents } from './messages.ts'

export class Questions {
  readonly #open = new Map<number, PromiseWithResolvers<ParentJob[]>>()
  #last = 0

  /** @param send sends the question, by its number */
  ask(send: (question: number) => void): Promise<ParentJob[]> {
    const question = ++this.#last
    const answer = Promise.withResolvers<ParentJob[]>()
    this.#open.set(question, answer)
    send(question)
    return answer.promise
  }

  answered({ question, parents, error }: Parents): void {
    const answer = this.#open.get(question)
    this.#open.delete(question)
    if (error !== null) answer?.reject(errorOf(error))
    else answer?.resolve([...(parents ?? [])])
  }
}
