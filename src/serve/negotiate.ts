/** Content types, coming and going. */

import { contentType, header, isMessagePack } from '../web/headers.ts'
import { Refusal } from '../web/problem.ts'
import { notAcceptable } from './refuse.ts'

const TAKEN = 'application/json, application/msgpack'

/** Headers of which one, be it empty, stands in for the Content-Type of a request without a body: no form of a web page can send any. */
const NOT_OF_A_FORM = ['x-requested-with', 'prefer']

/**
 * JSON and MessagePack alone: a page of another origin can send forms and plain text without being asked about, but not these. Nor can it
 * send such headers as stand in for a type where there is no body.
 * @returns whether there is a body to read @throws Refusal: 415
 */
export function checkContentType(request: Request, required: boolean): boolean {
  const type = contentType(request)
  if (type === undefined) {
    // Without a type nothing is read, but what is announced must not be ignored.
    const announced =
      request.headers.has('transfer-encoding') || Number(request.headers.get('content-length') ?? 0) !== 0
    if (required || announced) throw unsupported('The request has no Content-Type')
    if (NOT_OF_A_FORM.some((name) => request.headers.has(name))) return false
    throw unsupported('The request has neither a Content-Type nor X-Requested-With')
  }
  if (
    type === null ||
    !(type.media === 'application/json' || type.media.endsWith('+json') || isMessagePack(type.media))
  ) {
    throw unsupported('This Content-Type is not taken')
  }
  return true
}

function unsupported(what: string): Refusal {
  const detail = `${what}; send one of ${TAKEN}, in UTF-8 and uncompressed.`
  return new Refusal({ status: 415, detail, headers: { 'accept-post': TAKEN } })
}

/** @throws Refusal: 406 where Accept leaves nothing that the route can answer with */
export function checkAccept(request: Request, events: boolean): void {
  const accept = header(request, 'accept')
  if (accept === undefined || accept.trim() === '') return
  const ranges = accept.toLowerCase().split(',')
  if (!ranges.some((range) => isOffered(range, events))) {
    throw notAcceptable(events ? `${TAKEN}, text/event-stream` : TAKEN)
  }
}

function isOffered(range: string, events: boolean): boolean {
  const [media = '', ...parameters] = range.split(';').map((part) => part.trim())
  if (parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))) return false
  if (media === '*/*' || media === 'application/*' || media === 'application/json' || isMessagePack(media)) return true
  return events && (media === 'text/event-stream' || media === 'text/*')
}
