/**
 * Who sends a request: by the hook of the host application, by a token, or by being on this machine.
 *
 *   hook    decides each request; it may answer it itself, for instance with a redirect to a login
 *   tokens  `Authorization: Bearer`, or the cookie that a browser gets for a token
 *   local   whoever uses this machine, where the server tells who the client is; kept here alone, for all that mount it
 */
import { isResponse } from '../web/guard.ts'
import { hostOf, isThisMachine } from '../web/origin.ts'
import { clientOf } from '../web/permits.ts'
import { Refusal } from '../web/problem.ts'
import { bearerToken, Tokens } from '../web/tokens.ts'
import { UnauthorizedClients } from '../web/unauthorized.ts'
import { Caller, isRights, type Rights } from './rights.ts'
import { endedCookie, sessionCookie, sessionOf } from './session.ts'

/** What a hook says of a request. A falsy value: it may do nothing. */
export type RightsVerdict = Rights | false | null | undefined | Response
export type RightsHook = (request: Request) => RightsVerdict | Promise<RightsVerdict>

/** A token, and what it allows. */
export interface DashboardToken extends Rights {
  /** 16 to 1,024 visible ASCII characters. */
  token: string
}

const LOCAL: Rights = { who: 'local', operator: true, payloads: true }

export class Callers {
  readonly #hook: RightsHook | 'local' | undefined
  readonly #tokens: readonly DashboardToken[]
  readonly #known: Tokens
  readonly #unauthorized: UnauthorizedClients

  constructor(hook: RightsHook | 'local' | undefined, tokens: readonly DashboardToken[], stopping: AbortSignal) {
    this.#hook = hook
    this.#tokens = tokens
    this.#known = new Tokens(tokens.map(({ token }) => token))
    this.#unauthorized = new UnauthorizedClients(400, stopping, () => {})
  }

  /** Whether the page's files, which hold no data, are shown to everybody, so that they can ask for a token. */
  get arePagesOpen(): boolean {
    return this.#hook === undefined
  }

  /** @returns a Response: the hook's own @throws Refusal: 401, 403 */
  async of(request: Request): Promise<Caller | Response> {
    const shown = this.#known.indexOf(bearerToken(request))
    const session = sessionOf(
      request,
      this.#tokens.map(({ token }) => token),
    )
    const own = this.#tokens[shown ?? session ?? -1]
    if (own !== undefined) return callerOf(own, shown === undefined)
    if (this.#hook === undefined) throw await this.#unauthorized.refusal(clientOf(request), request.signal)
    if (this.#hook === 'local') {
      mustBeLocal(request)
      return new Caller(LOCAL)
    }
    const verdict = await this.#hook(request)
    if (isResponse(verdict)) return verdict
    if (!verdict) throw new Refusal(403, 'You may not use this dashboard.')
    if (!isRights(verdict))
      throw new TypeError('rights: the hook gave no rights, such as { operator: true, payloads: false }')
    return new Caller(verdict)
  }

  /** The cookie for a token. @param base path of the page @throws Refusal: 401 */
  async signedIn(request: Request, token: string, base: string): Promise<string> {
    const index = this.#known.indexOf(token)
    if (index === undefined) throw await this.#unauthorized.refusal(clientOf(request), request.signal)
    return sessionCookie(token, request, base)
  }

  signedOut(request: Request, base: string): string {
    return endedCookie(request, base)
  }
}

function callerOf({ token: _, ...rights }: DashboardToken, isSession: boolean): Caller {
  return new Caller({ who: 'token', ...rights }, isSession)
}

/**
 * A request of this machine, through no proxy. A client whose address the server does not tell is not of this machine.
 * @throws Refusal: 403
 */
export function mustBeLocal(request: Request): void {
  const client = clientOf(request)
  const isForwarded = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'].some((name) => request.headers.has(name))
  if (client !== undefined && isLoopback(client) && !isForwarded && isThisMachine(hostOf(request))) return
  const fault =
    client === undefined
      ? 'This server does not tell whether a request is from its own machine. Give the dashboard rights or tokens.'
      : 'This dashboard answers its own machine alone. Give it rights or tokens to open it to others.'
  throw new Refusal(403, fault)
}

/** @param client as `clientOf` has it */
const isLoopback = (client: string): boolean => /^127\.|^0:0:0:0::\/64$/.test(client)
