/** Refusals that only the service makes. */
import type { ErrorCode } from '../values/errors.ts'
import { Refusal } from '../web/problem.ts'
import type { Issue } from './schema.ts'

export function unauthorized(): Refusal {
  return new Refusal({
    status: 401,
    detail: 'Send the token: Authorization: Bearer TOKEN.',
    headers: { 'www-authenticate': 'Bearer realm="millpond"' },
  })
}

export function notAcceptable(offered: string): Refusal {
  const detail = `Nothing that Accept names is on offer here; on offer are ${offered}.`
  return new Refusal({ status: 406, detail })
}

export function invalid(status: 400 | 422, what: string, issues: readonly Issue[]): Refusal {
  const [first] = issues
  const where = first === undefined || first.path === '' ? what : `${what}: ${first.path}`
  const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : ''
  const detail = `${where} ${first?.message ?? 'is not valid'}${more}.`
  return new Refusal({ status, code: 'InvalidOption', detail, members: { issues } })
}

export function conflict(code: ErrorCode, detail: string, members: Record<string, unknown>): Refusal {
  return new Refusal({ status: 409, code, detail, members })
}

export function unknownJob(): Refusal {
  return new Refusal({ status: 404, code: 'JobUnknown', detail: 'There is no such job, or it is not kept any more.' })
}
