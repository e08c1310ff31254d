/**
 * Which requests are served. With tokens: those with one of them. Without, the service is on loopback, and programs of this machine may
 * use it; but not pages in a browser of this machine, of whatever site:
 *
 *   Host     must name this machine, so that a site whose name is pointed here (DNS rebinding) gets nothing
 *   Origin   must be the service's own, and Sec-Fetch-Site must not contradict, so that pages of other sites cannot send anything
 *
 * There is no CORS, so a browser shows no answer to pages of another origin.
 */
import { hostOf, isForeign, isThisMachine } from '../web/origin.ts'
import { Refusal } from '../web/problem.ts'
import { bearerToken, Tokens } from '../web/tokens.ts'

export class Guard {
  readonly #tokens: Tokens
  readonly #hosts: ReadonlySet<string>

  /** @param hosts further names that Host may have without tokens */
  constructor(tokens: readonly string[], hosts: readonly string[] = []) {
    this.#tokens = new Tokens(tokens)
    this.#hosts = new Set(hosts.map((host) => host.toLowerCase()))
  }

  /** @throws Refusal: 403 */
  checkHost(request: Request): void {
    if (this.#tokens.size === 0 && !this.#isOwn(hostOf(request))) {
      throw new Refusal(403, 'The Host header does not name this machine.')
    }
  }

  /** @throws Refusal: 403 */
  checkOrigin(request: Request): void {
    if (isForeign(request, hostOf(request))) {
      throw new Refusal(403, 'Pages of other origins may not use this service.')
    }
  }

  /** Whether the request has a token, or needs none. */
  isAuthorized(request: Request): boolean {
    return this.#tokens.size === 0 || this.#tokens.indexOf(bearerToken(request)) !== undefined
  }

  #isOwn(host: string): boolean {
    return isThisMachine(host) || this.#hosts.has(host.toLowerCase().replace(/:\d{1,5}$/, ''))
  }
}
