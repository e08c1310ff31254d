import type { ExtendOutcome, Extension } from '../../../store.ts'
import type { Context } from '../context.ts'
import { heldValues, tagged, textArray, texts } from '../wire.ts'

export async function extend(
  { calls }: Context,
  queue: string,
  lease: number | null,
  extensions: readonly Extension[],
): Promise<ExtendOutcome[]> {
  const reports = extensions.map(({ progress }) => (progress === null ? null : tagged(progress)))
  const [, ids, fences] = heldValues(queue, extensions)
  const values = [queue, lease, ids, fences, textArray(reports), calls.now()]
  return texts(await calls.answer('extend($1, $2, $3, $4, $5, $6)', values)).map(
    (outcome): ExtendOutcome => (outcome === 'ok' || outcome === 'cancelled' ? outcome : 'stale'),
  )
}
