/**
 * Refuses paths that programs on the way could read differently. A proxy or router in front may have allowed a path by its text, so a path
 * that means another one once it is resolved or decoded is refused.
 */
import { Refusal } from './problem.ts'

/** `.` or `..` as a segment, also percent-encoded, which URLs resolve all the same. */
const DOT_SEGMENT = /(?:^|\/)(?:\.|%2e){1,2}(?:\/|$)/i
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not come in
const CONTROL = /[\u0000-\u0020\u007f]/
/** Letters, digits and `-._~` need no encoding (RFC 3986, section 2.3); clients encode them only to hide them. */
const ENCODED_UNRESERVED = /%(?:3[0-9]|[46][1-9a-f]|[57][0-9a]|2[de]|5f|7e)/i

/**
 * Refuses a target that a URL made of it would change.
 * @param target of the request line: the path and the query
 * @throws Refusal: 400, InvalidPath
 */
export function checkTarget(target: string): void {
  const [path = ''] = target.split('?', 1)
  // Such as `*`, or `http://…`, whose host no program in front may have checked.
  if (!target.startsWith('/')) throw invalidPath('The target must be a path that begins with a slash, not a whole URL')
  // A URL drops them.
  if (CONTROL.test(target)) throw invalidPath('The target has a control character')
  if (target.includes('#')) throw invalidPath('The target has a #, which is not sent')
  if (path.includes('\\')) throw invalidPath('The path has a backslash; separate segments by slashes')
  if (DOT_SEGMENT.test(path)) throw invalidPath('The path has a segment . or ..; send the path that it leads to')
}

/**
 * The segments of a path, decoded.
 * @param path without the query
 * @throws Refusal: 400, InvalidPath
 */
export function segmentsOf(path: string): string[] {
  if (ENCODED_UNRESERVED.test(path)) {
    throw invalidPath('The path has letters, digits or one of -._~ percent-encoded; send them as they are')
  }
  try {
    return path.slice(1).split('/').map(decodeURIComponent)
  } catch {
    throw invalidPath('The path is not percent-encoded UTF-8')
  }
}

function invalidPath(what: string): Refusal {
  return new Refusal(400, `${what}.`, { code: 'InvalidPath' })
}
