/**
 * Which requests may share an answer: those of whose headers each one is known to be harmless (`UNKEYED`), or is part of the key
 * (`DIVIDING`). Any other may say on whose behalf the request comes, so it makes the request personal. New proxies invent new headers: a
 * list of those that name users would never be whole.
 */

/** Headers that may be there without being part of the key. No service should answer by them, unless it says so by `Vary`. */
export const UNKEYED: ReadonlySet<string> = new Set([
  // What the client can read, and what it is.
  ...['accept', 'accept-charset', 'accept-encoding', 'accept-language', 'user-agent', 'referer'],
  ...['dnt', 'priority', 'purpose', 'sec-gpc', 'sec-purpose', 'upgrade-insecure-requests'],
  ...['device-memory', 'downlink', 'dpr', 'ect', 'rtt', 'save-data', 'viewport-width', 'width'],
  // Heeded by `isParticular`.
  ...['cache-control', 'pragma'],
  // Of the connection, and of the way here.
  ...['alt-used', 'cdn-loop', 'connection', 'host', 'keep-alive', 'proxy-connection', 'te', 'via'],
  // Addresses of clients, which next to every proxy adds.
  ...[
    'cf-connecting-ip',
    'cf-connecting-ipv6',
    'cf-pseudo-ipv4',
    'fastly-client-ip',
    'fly-client-ip',
    'true-client-ip',
  ],
  ...['x-azure-clientip', 'x-azure-socketip', 'x-client-ip', 'x-cluster-client-ip', 'x-envoy-external-address'],
  ...['x-forwarded-for', 'x-original-forwarded-for', 'x-real-ip'],
  // Traces and times.
  ...['b3', 'cf-ray', 'fly-request-id', 'request-id', 'sentry-trace', 'traceparent', 'tracestate', 'uber-trace-id'],
  ...[
    'x-amz-cf-id',
    'x-amzn-trace-id',
    'x-azure-ref',
    'x-b3-flags',
    'x-b3-parentspanid',
    'x-b3-sampled',
    'x-b3-spanid',
  ],
  ...['x-b3-traceid', 'x-cloud-trace-context', 'x-correlation-id', 'x-datadog-origin', 'x-datadog-parent-id'],
  ...['x-datadog-sampling-priority', 'x-datadog-tags', 'x-datadog-trace-id', 'x-envoy-attempt-count'],
  ...['x-envoy-expected-rq-timeout-ms', 'x-queue-start', 'x-request-id', 'x-request-start'],
])
/** Client hints and fetch metadata, which no page can set. */
export const UNKEYED_PREFIXES = ['sec-ch-', 'sec-fetch-']

/**
 * Headers whose value is part of the key, although no service says so by `Vary`: those by which proxies tell what was asked for, and which
 * frameworks put into links and redirects. Anyone can send them: were they not a part of the key, one client could have its own host
 * written into everyone's answer. And a few by which services choose what to answer.
 */
export const DIVIDING: ReadonlySet<string> = new Set([
  ...['forwarded', 'x-forwarded-host', 'x-forwarded-port', 'x-forwarded-prefix', 'x-forwarded-proto'],
  ...['x-forwarded-path', 'x-forwarded-protocol', 'x-forwarded-scheme', 'x-forwarded-server', 'x-forwarded-ssl'],
  ...['x-forwarded-uri', 'x-host', 'x-original-host', 'x-original-uri', 'x-original-url', 'x-rewrite-url'],
  ...['x-scheme', 'x-script-name', 'x-url-scheme', 'front-end-https', 'cf-visitor', 'cloudfront-forwarded-proto'],
  ...['cf-ipcountry', 'cloudfront-viewer-country', 'content-type', 'prefer', 'x-requested-with'],
])

/** Headers that ask for a part of an answer, for one in comparison with what the client has, or for another protocol; and those of a body. */
const PARTICULAR: ReadonlySet<string> = new Set([
  ...['range', 'if-none-match', 'if-modified-since', 'if-match', 'if-unmodified-since', 'if-range', 'upgrade'],
  ...['content-length', 'transfer-encoding'],
  // With these a GET is none to frameworks that heed them.
  ...['x-http-method', 'x-http-method-override', 'x-method-override'],
])

/** Most names of headers that are remembered for having made a request personal. */
const MAX_SEEN_NAMES = 20

export interface HeaderNames {
  /** Names in any case: whose values are part of the key; that no answer depends on; that make a request personal after all. */
  vary?: readonly string[]
  ignore?: readonly string[]
  personal?: readonly string[]
}

export class RequestRules {
  readonly #dividing: ReadonlySet<string>
  readonly #unkeyed: ReadonlySet<string>
  readonly #personal: ReadonlySet<string>
  readonly #seen = new Set<string>()

  constructor({ vary = [], ignore = [], personal = [] }: HeaderNames) {
    this.#dividing = new Set([...DIVIDING, ...vary.map(lower)])
    this.#unkeyed = new Set([...UNKEYED, ...ignore.map(lower)])
    this.#personal = new Set(personal.map(lower))
  }

  /** Headers that made requests personal, the first twenty names of them. */
  get seen(): readonly string[] {
    return [...this.#seen].sort()
  }

  /**
   * What the headers put in front of the key: nothing for most requests, else a line for each dividing header and an empty one.
   * @param covered names, in any case, of headers that the key accounts for
   * @returns undefined for a request that shares nothing
   */
  prefix(headers: Iterable<[string, string]>, covered: readonly string[]): string | undefined {
    const names = covered.length === 0 ? covered : covered.map(lower)
    const lines: string[] = []
    for (const [name, value] of headers) {
      if (PARTICULAR.has(name) || isParticular(name, value)) return undefined
      if (names.includes(name)) continue
      if (this.#personal.has(name)) return this.#refuse(name)
      if (this.#dividing.has(name)) lines.push(`${name}:${name === 'forwarded' ? withoutNodes(value) : value}\n`)
      // Its value divides where the answer is not for every origin (`shareable.ts`).
      else if (name === 'origin') lines.push('origin\n')
      else if (!this.#unkeyed.has(name) && !UNKEYED_PREFIXES.some((start) => name.startsWith(start))) {
        return this.#refuse(name)
      }
    }
    return lines.length === 0 ? '' : `${lines.sort().join('')}\n`
  }

  #refuse(name: string): undefined {
    if (this.#seen.size < MAX_SEEN_NAMES) this.#seen.add(name.slice(0, 100))
  }
}

const lower = (name: string) => name.toLowerCase()

/** Whether the request asks for what another's answer cannot be: a stream, or something fresh. */
function isParticular(name: string, value: string): boolean {
  if (name === 'accept') return /text\/event-stream/i.test(value)
  if (name === 'pragma') return /no-cache/i.test(value)
  return name === 'cache-control' && /(?<![\w-])(?:no-store|no-cache|max-age\s*=\s*"?0+(?!\d))/i.test(value)
}

/**
 * A `Forwarded` without who asked and by which proxy (RFC 7239, sections 5.1 and 5.2), which with most proxies no two clients share.
 * Only what is plainly an address or a name goes: nothing of it could be taken for a host by those who read the header less strictly.
 */
function withoutNodes(forwarded: string): string {
  return forwarded.replace(/(?<=^|[\s,;])(for|by)=(?:"[\w.:[\]-]*"|[\w.:[\]-]+)(?=[\s,;]|$)/gi, '$1=_')
}
