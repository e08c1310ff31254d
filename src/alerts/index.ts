/** `millpond/alerts`: rules on what queues do, and who is told: a signed webhook, or a function. */
import '../values/runtime/runtime.ts'
import type { Millpond } from '../pond/millpond.ts'
import { MAX_PAYLOAD } from '../values/encoding/encoding.ts'
import { MillpondError } from '../values/errors/errors.ts'
import { needs } from '../values/operations/capabilities.ts'
import { checkOptions, isFunction, type Rules } from '../values/options/options.ts'
import { DEFAULTS } from '../values/settings/contract-defaults.ts'
import { type Duration, milliseconds } from '../values/time/duration.ts'
import { reporter } from '../web/problem.ts'
import { deliver } from '../webhook/delivery.ts'
import { signingKey } from '../webhook/signature.ts'
import type { Worker } from '../worker/worker.ts'
import { OWN_QUEUE } from './readings.ts'
import { type AlertRule, checkRules } from './rules.ts'
import { type Alert, watcher } from './watch.ts'

export type { AlertCondition, AlertMetric, AlertRule } from './rules.ts'
export type { Alert } from './watch.ts'

/** A receiver of webhooks, as those of `millpond serve`; see docs/serve.md. */
export interface AlertWebhook {
  /** `https:` or `http:`, without user and password. */
  url: string | URL
  /** `whsec_…`; several while one is replaced. */
  secret: string | readonly string[]
}

export interface AlertOptions {
  /** At least one. They are those of the process that looks, so give the same in all. */
  rules: readonly AlertRule[]
  /**
   * Who is told: a webhook, or a function, which is called again, later, if it throws. Each alert is told once, by one
   * of the processes; more often only after a crash or a lost answer.
   */
  notify: ((alert: Alert, signal: AbortSignal) => unknown) | AlertWebhook
  /** How often one of the processes looks; 100 ms to 1 day, 15 s unless set. */
  every?: Duration | undefined
  /** Called with errors of looking, such as those of the store; the next look follows. Unset: the first is a process warning. */
  onError?: ((error: unknown) => void) | undefined
}

/** Alerts that this process takes part in. */
export interface Alerts extends AsyncDisposable {
  /** Stops; another process goes on, if there is one. `pond.close` stops them, too. */
  close(): Promise<void>
}

const DAY = 86_400_000
/** Milliseconds after which another process takes over from one that was killed. */
const LEASE = 15_000
/** Milliseconds until it is made sure that there is a job to look. */
const AGAIN = 60_000
/** How long it is kept who was told of what. */
const TOLD = '7d'
const MOST_ATTEMPTS = DEFAULTS.bounds.attempts.most

const OPTION_RULES: Rules<AlertOptions> = {
  rules: Array.isArray,
  notify: (value) =>
    typeof value === 'function' || (typeof value === 'object' && value !== null) || 'a function or a webhook',
  every: (value) => milliseconds(value, 'every', 100, DAY) > 0,
  onError: isFunction,
}
const WEBHOOK_RULES: Rules<AlertWebhook> = {
  url: (value) => URL.canParse(String(value)) || 'a URL',
  // It is not shown in the error.
  secret: () => true,
}

/**
 * Looks at the rules, in one process at a time of all that call this over the same store, and tells when an alert fires
 * and when it resolves.
 * @throws InvalidOption, InvalidName, NotSupported (a store without keys, results, histograms or workers), Closed
 */
export function alerts(pond: Millpond, options: AlertOptions): Alerts {
  const { rules, notify, every = 15_000, onError } = checkOptions(options, OPTION_RULES, 'alerts', ['rules', 'notify'])
  const checked = checkRules(rules)
  for (const capability of ['keys', 'results', 'find', 'histograms', 'workers'] as const)
    needs(pond.store, capability, 'alerts')
  const report = reporter(onError === undefined ? undefined : (error) => onError(error))
  const fault = (error: unknown) => report(error, undefined)
  const stop = new AbortController()
  const stopping = AbortSignal.any([stop.signal, pond.stopping])

  const told = pond.queue<Alert>(OWN_QUEUE, { keep: { done: TOLD } })
  const teller = tell(pond, notify)
  const right = pond.queue(`${OWN_QUEUE}/watch`, { lease: LEASE })
  const watching = watcher({
    pond,
    told,
    rules: checked,
    every: milliseconds(every, 'every'),
    stopping,
    onError: fault,
  })
  const watch = right.work(watching, { concurrency: 1 })
  const ensure = () => {
    right.push(null, { key: 'watch', attempts: MOST_ATTEMPTS }).catch((error: unknown) => {
      if (!stopping.aborted) fault(error)
    })
  }
  ensure()
  const again = setInterval(ensure, AGAIN).unref()
  stopping.addEventListener('abort', () => clearInterval(again), { once: true })

  const close = async () => {
    stop.abort()
    await Promise.all([watch.close(), teller.worker.close()])
    teller.disconnect()
  }
  return { close, [Symbol.asyncDispose]: close }
}

/** The worker that tells. */
function tell(pond: Millpond, notify: AlertOptions['notify']): { worker: Worker; disconnect: () => void } {
  if (typeof notify !== 'function') return deliver(pond, { queue: OWN_QUEUE, ...webhookOf(notify) }, MAX_PAYLOAD)
  const queue = pond.queue<Alert>(OWN_QUEUE)
  const worker = queue.work(async ({ data }, { signal }) => void (await notify(data, signal)), { concurrency: 1 })
  return { worker, disconnect: () => {} }
}

function webhookOf(given: AlertWebhook) {
  const { url, secret } = checkOptions(given, WEBHOOK_RULES, 'notify of alerts', ['url', 'secret'])
  const secrets: readonly unknown[] = Array.isArray(secret) ? secret : [secret]
  const keys = secrets.map((one) => (typeof one === 'string' ? signingKey(one) : undefined))
  const good = keys.filter((key) => key !== undefined)
  if (good.length === keys.length && keys.length > 0) {
    return { url: new URL(url), keys: good, concurrency: 1, timeout: DEFAULTS.webhook.timeout }
  }
  throw new MillpondError('InvalidOption', 'notify of alerts: a secret is whsec_ and 24 to 64 bytes in base64')
}
