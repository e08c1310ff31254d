/**
 * Which requests may share a response: those whose headers are each known to be harmless (`UNKEYED`), or are part of the key (`DIVIDING`).
 * Any other header may name a user, so it makes the request personal. A list of the headers that name users would never be complete,
 * because new proxies invent new headers.
 */

const listed = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/))

/** Headers that are not part of the key. A service that answers by one of them must say so by `Vary`. */
export const UNKEYED = listed(`
  accept accept-charset accept-encoding accept-language user-agent referer dnt priority purpose sec-gpc sec-purpose
  upgrade-insecure-requests device-memory downlink dpr ect rtt save-data viewport-width width cache-control pragma
  alt-used cdn-loop connection keep-alive proxy-connection te via
  cf-connecting-ip cf-connecting-ipv6 cf-pseudo-ipv4 fastly-client-ip fly-client-ip true-client-ip x-azure-clientip
  x-azure-socketip x-client-ip x-cluster-client-ip x-envoy-external-address x-forwarded-for x-original-forwarded-for
  x-real-ip b3 cf-ray fly-request-id request-id sentry-trace traceparent tracestate uber-trace-id x-amz-cf-id
  x-amzn-trace-id x-azure-ref x-b3-flags x-b3-parentspanid x-b3-sampled x-b3-spanid x-b3-traceid
  x-cloud-trace-context x-correlation-id x-datadog-origin x-datadog-parent-id x-datadog-sampling-priority
  x-datadog-tags x-datadog-trace-id x-envoy-attempt-count x-envoy-expected-rq-timeout-ms x-queue-start x-request-id
  x-request-start`)
/** Client hints and fetch metadata, which no page can set. */
export const UNKEYED_PREFIXES = ['sec-ch-', 'sec-fetch-']

/**
 * Headers whose values are part of the key, although no service names them in `Vary`. Most tell which host name the client gave to a
 * proxy, and frameworks put that name into links and redirects. Any client can send such a header. Were it not part of the key, one client
 * could put its own host into the responses of all others. The rest are headers by which services choose what to answer.
 */
export const DIVIDING = listed(`
  forwarded x-forwarded-host x-forwarded-port x-forwarded-prefix x-forwarded-proto x-forwarded-path
  x-forwarded-protocol x-forwarded-scheme x-forwarded-server x-forwarded-ssl x-forwarded-uri x-host x-original-host
  x-original-uri x-original-url x-rewrite-url x-scheme x-script-name x-url-scheme front-end-https cf-visitor
  cloudfront-forwarded-proto cf-ipcountry cloudfront-viewer-country content-type prefer x-requested-with`)

/**
 * Headers whose request shares nothing. They ask for a part, for a comparison with the client's copy, for another protocol, or by another
 * method; or they are of a body.
 */
const PARTICULAR = listed(`
  range if-none-match if-modified-since if-match if-unmodified-since if-range upgrade content-length
  transfer-encoding x-http-method x-http-method-override x-method-override`)

/** Most header names that `stats().personal` lists. */
const MAX_PERSONAL_NAMES = 20

/** @param name in any case */
export const isHeaderName = (name: string): boolean => /^[!#$%&'*+\-.^_`|~a-z0-9]+$/i.test(name)

/** Of headers, in any case: those in the key; those that no response depends on; those that make a request personal after all. */
export interface HeaderNames {
  vary?: readonly string[] | undefined
  ignore?: readonly string[] | undefined
  personal?: readonly string[] | undefined
}

export class RequestRules {
  readonly #dividing: ReadonlySet<string>
  readonly #unkeyed: ReadonlySet<string>
  readonly #personal: ReadonlySet<string>
  readonly #seenPersonal = new Set<string>()
  /** Whether the host divides; not if it is declared harmless. */
  readonly #dividesHosts: boolean

  constructor({ vary = [], ignore = [], personal = [] }: HeaderNames) {
    this.#dividing = new Set([...DIVIDING, ...vary.map(lower)])
    this.#unkeyed = new Set([...UNKEYED, ...ignore.map(lower)])
    this.#personal = new Set(personal.map(lower))
    this.#dividesHosts = !this.#unkeyed.has('host')
  }

  /** The first names of headers that made requests personal. */
  get personal(): readonly string[] {
    return [...this.#seenPersonal].sort()
  }

  /**
   * The text in front of the key: empty for most requests, else a line for each dividing header, and an empty line.
   *
   * A client can name two hosts, one in the URL (the whole URL in the request line, or `:authority`) and one in `Host`.
   * Handlers put either into links, so both are part of the key.
   * @param covered names, in any case, of headers that the key accounts for
   * @param hasUrl whether the key holds the URL
   * @returns undefined for a request that shares nothing
   */
  prefix({ url, headers }: Request, covered: readonly string[], hasUrl: boolean): string | undefined {
    const names = covered.length === 0 ? covered : covered.map(lower)
    const lines: string[] = []
    const dividesHosts = this.#dividesHosts && !names.includes('host')
    if (dividesHosts) {
      const host = headers.get('host')
      const { origin, authority } = partsOf(url)
      if (!hasUrl) lines.push(`${origin}\n`)
      if (host === null) lines.push('host\n')
      else if (host !== authority) lines.push(`host:${host}\n`)
    }
    for (const [name, value] of headers) {
      if (PARTICULAR.has(name) || isParticular(name, value)) return undefined
      if (names.includes(name)) continue
      if (this.#personal.has(name)) return this.#refuse(name)
      if (name === 'host') continue
      if (this.#dividing.has(name)) lines.push(`${name}:${name === 'forwarded' ? withoutNodes(value) : value}\n`)
      // Its value divides if the response is not for every origin (`response-rules.ts`).
      else if (name === 'origin') lines.push('origin\n')
      else if (!this.#unkeyed.has(name) && !UNKEYED_PREFIXES.some((start) => name.startsWith(start))) {
        return this.#refuse(name)
      }
    }
    return lines.length === 0 ? '' : `${lines.sort().join('')}\n`
  }

  #refuse(name: string): undefined {
    if (this.#seenPersonal.size < MAX_PERSONAL_NAMES) this.#seenPersonal.add(name.slice(0, 100))
  }
}

const lower = (name: string) => name.toLowerCase()

/** Of an absolute URL, as text: parsing each would cost more than the rest of the key. */
function partsOf(url: string): { origin: string; authority: string } {
  const start = url.indexOf('://') + 3
  const end = url.indexOf('/', start)
  const origin = end < 0 ? url : url.slice(0, end)
  return { origin, authority: origin.slice(start) }
}

/** Whether the request asks for a stream, or for something fresh. */
function isParticular(name: string, value: string): boolean {
  if (name === 'accept') return /text\/event-stream/i.test(value)
  if (name === 'pragma') return /no-cache/i.test(value)
  return name === 'cache-control' && /(?<![\w-])(?:no-store|no-cache|max-age\s*=\s*"?0+(?!\d))/i.test(value)
}

/**
 * A `Forwarded` without `for` and `by` (RFC 7239, sections 5.1 and 5.2), which most proxies set differently for each client. Only plain
 * addresses and names are removed: a lenient parser must not find a host in the removed text.
 */
function withoutNodes(forwarded: string): string {
  return forwarded.replace(/(?<=^|[\s,;])(for|by)=(?:"[\w.:[\]-]*"|[\w.:[\]-]+)(?=[\s,;]|$)/gi, '$1=_')
}
