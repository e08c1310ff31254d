/** Calls to several partitions, which lie on several servers: what one of them cannot answer says nothing of the others. */

/** Why a part was not answered. */
export interface Trouble {
  reason: unknown
}

/** Waits for all of them, so that no answer comes after the caller's own. Where a call failed, there is no reply; `failure` is the first. */
export async function settled<T>(
  calls: readonly Promise<T>[],
): Promise<{ replies: (T | undefined)[]; failure: Trouble | undefined }> {
  const results = await Promise.allSettled(calls)
  return {
    replies: results.map((result) => (result.status === 'fulfilled' ? result.value : undefined)),
    failure: results.find((result) => result.status === 'rejected'),
  }
}
