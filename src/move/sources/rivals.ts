/** Which rival's data a URL means. Its reader is loaded when it is first used. */
import type { MillpondError } from '../../values/errors.ts'
import type { Source } from '../source.ts'

/** @param onTrouble is told of each failure that is repeated @param stop ends the repeating */
export type OpenRival = (url: string, onTrouble: (error: MillpondError) => void, stop: AbortSignal) => Promise<Source>

const RIVALS: Readonly<Record<string, () => Promise<{ open: OpenRival }>>> = {}

/** @returns undefined: it is the URL of a store */
export async function openRival(...[url, onTrouble, stop]: Parameters<OpenRival>): Promise<Source | undefined> {
  const [scheme = ''] = url.split(':', 1)
  const load = Object.hasOwn(RIVALS, scheme) ? RIVALS[scheme] : undefined
  return load === undefined ? undefined : (await load()).open(url, onTrouble, stop)
}
