import type { ExtendOutcome, Extension } from '../../../store.ts'
import type { Context } from '../notifier.ts'
import { bodiesText, heldValues } from '../wire.ts'

export async function extend(
  { calls }: Context,
  queue: string,
  lease: number | null,
  extensions: readonly Extension[],
): Promise<ExtendOutcome[]> {
  const reports = bodiesText(extensions.map(({ progress }) => progress))
  const values = [queue, lease, ...heldValues(extensions), reports, calls.now()]
  return calls.answer<ExtendOutcome[]>('extend($1, $2, $3, $4, $5, $6)', values)
}
