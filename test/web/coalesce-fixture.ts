/** A handler whose runs the test answers, behind `coalesceResponses`. */
import assert from 'node:assert/strict'
import { setImmediate } from 'node:timers/promises'
import { type CoalesceResponsesOptions, coalesceResponses } from '../../src/web/coalesce.ts'

export type Headers = Record<string, string>

export function served(options?: CoalesceResponsesOptions) {
  const runs: (PromiseWithResolvers<Response> & { request: Request })[] = []
  const share = coalesceResponses(options)
  const run = (index: number) => {
    const found = runs[index]
    assert.ok(found, `the handler ran ${index + 1} times`)
    return found
  }
  return {
    share,
    send: (url: string, init: RequestInit & { headers?: Headers } = {}) => {
      const request = new Request(`http://localhost${url}`, init)
      return share(request, () => {
        const made = { request, ...Promise.withResolvers<Response>() }
        runs.push(made)
        return made.promise
      })
    },
    answer: (
      index: number,
      body: ConstructorParameters<typeof Response>[0] = `answer ${index}`,
      init: ResponseInit = {},
    ) => run(index).resolve(new Response(body, init)),
    fail: (index: number, error: unknown) => run(index).reject(error),
    get runs() {
      return runs.length
    },
  }
}

/** Lets everything go on that waits for nothing but the event loop. */
export async function settle(): Promise<void> {
  for (let tick = 0; tick < 20; tick++) await setImmediate()
}

export async function texts(responses: Iterable<Promise<Response>>): Promise<string[]> {
  return Promise.all([...responses].map(async (response) => (await response).text()))
}
