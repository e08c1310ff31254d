/** Whether the data are of the version that the scripts know: contract/redis/README.md, "The version". */
import { MillpondError } from '../../values/errors/errors.ts'
import type { Calls } from './connection/calls.ts'
import type { Settings } from './settings.ts'
import { numberIn, pack } from './wire.ts'

/** `found`: of the data; that of the scripts, where there are none. */
export async function dataVersion(calls: Calls): Promise<{ found: number; known: number }> {
  const [found, known] = await calls.script('opened', [pack([null]), '0'])
  return { found: numberIn(found), known: numberIn(known) }
}

/** @throws StoreVersion */
export async function checkVersion(calls: Calls, { prefix, where }: Settings): Promise<void> {
  const { found, known } = await dataVersion(calls)
  if (found === known) return
  const data = `the keys under the prefix ${prefix} of Redis at ${where} are of version ${found}`
  const message =
    found > known
      ? `${data}, made by a newer Millpond: upgrade this one, which knows version ${known}`
      : `${data}, made by an older Millpond, which this one cannot read: use another prefix, or remove those keys`
  throw new MillpondError('StoreVersion', message)
}
