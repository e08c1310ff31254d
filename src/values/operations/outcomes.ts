/** What has become of jobs: answers that are bounded in bytes. contract/operations.md, "outcomes". */

import type { Store } from '../../store.ts'
import type { JobOutcome } from '../jobs/records.ts'
import { DEFAULTS } from '../settings/contract-defaults.ts'

const MAX_BYTES = DEFAULTS.store.outcomes

/** The answer of a store that looks at one job after the other. */
export function firstOutcomes(ids: readonly string[], look: (id: string) => JobOutcome | null): (JobOutcome | null)[] {
  const answer: (JobOutcome | null)[] = []
  let bytes = 0
  for (const given of ids) {
    const found = look(given)
    if (found === null) answer.push(null)
    else {
      const { id, queue, state, attempt, attempts, result, error } = found
      answer.push({ id, queue, state, attempt, attempts, result, error })
      // Characters of a text are counted as bytes: close enough.
      bytes += (result?.body.length ?? 0) + (error?.message.length ?? 0) + (error?.stack?.length ?? 0)
    }
    if (bytes >= MAX_BYTES) break
  }
  return answer
}

/** For all ids, an answer of the store at a time. */
export async function* outcomesOf(
  { operations }: Pick<Store, 'operations'>,
  ids: readonly string[],
): AsyncGenerator<(JobOutcome | null)[]> {
  for (let from = 0; from < ids.length; ) {
    const answer = await operations.outcomes({ ids: from === 0 ? ids : ids.slice(from) })
    if (answer.length === 0) throw new TypeError('millpond: the store answered nothing')
    yield answer
    from += answer.length
  }
}
