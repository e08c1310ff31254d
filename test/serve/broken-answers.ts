/** Makes answers that try their luck with an HTTP client: some good, most of them broken somewhere. The same seed makes the same ones. */
import type { Socket } from 'node:net'
import type { Dice } from './hostile-requests.ts'

const STATUSES = [
  ...[
    '200 OK',
    '200 OK',
    '200 OK',
    '201 Created',
    '204 No Content',
    '205 Reset',
    '299 x',
    '301 Moved',
    '304 Not Modified',
  ],
  ...['307 No', '400 Bad', '401 No', '407 Proxy', '408 Late', '410 Gone', '421 No', '429 Slow', '500 No', '503 Later'],
  ...[
    '100 Continue',
    '101 Switching Protocols',
    '102 Wait',
    '103 Early Hints',
    '199 x',
    '000 x',
    '099 x',
    '600 x',
    '999 x',
  ],
  ...['2000 OK', '20 OK', '-1 No', 'abc OK', '200', '200 \u0000', '\u00ff\u00fe'],
]
const VERSIONS = [
  'HTTP/1.1',
  'HTTP/1.1',
  'HTTP/1.1',
  'HTTP/1.0',
  'HTTP/0.9',
  'HTTP/2.0',
  'HTTP/9.9',
  'ICY',
  '',
  'http/1.1',
]
const CODINGS = [
  'gzip',
  'br',
  'deflate',
  'zstd',
  'identity',
  'x-gzip',
  'nonsense',
  Array(6).fill('gzip').join(','),
  Array(99).fill('br').join(','),
]
const HEADERS: readonly ((dice: Dice) => string)[] = [
  () => 'Content-Type: application/json',
  (dice) => `Content-Encoding: ${dice.pick(CODINGS)}`,
  (dice) =>
    `Content-Length: ${dice.pick(['0', '3', '7', '100', '99999999', '-1', '1e3', '7, 7', '7, 8', '18446744073709551616', 'x'])}`,
  (dice) =>
    `Transfer-Encoding: ${dice.pick(['chunked', 'gzip, chunked', 'chunked, chunked', 'identity', 'x', ' chunked'])}`,
  (dice) => `Connection: ${dice.pick(['close', 'keep-alive', 'upgrade', 'x', 'close, keep-alive'])}`,
  (dice) => `Keep-Alive: timeout=${dice.pick(['0', '1', '-1', 'x', '99999999999'])}`,
  (dice) =>
    `Retry-After: ${dice.pick(['1', '0', '-1', 'soon', '99999999999999999999', 'Wed, 99 Foo 2026 99:99:99 GMT'])}`,
  () => 'Upgrade: websocket',
  () => 'Upgrade: h2c',
  () => 'Trailer: X-After',
  () => 'Location: http://127.0.0.1:1/',
  () => 'Set-Cookie: __proto__=1',
  () => '__proto__: x',
  (dice) => `X-Long: ${'y'.repeat(dice.pick([10, 1000, 20_000]))}`,
  (dice) => Array.from({ length: dice.pick([3, 300, 3000]) }, (_, n) => `X-${n}: ${n}`).join('\r\n'),
  () => ' folded: line',
  () => 'no colon',
  () => ': no name',
  () => 'Bad\u0000Name: x',
  () => 'X: \u0001\u007f\u00ff',
]
const BODIES: readonly ((dice: Dice) => string)[] = [
  () => '{"n":1}',
  () => '',
  () => '{"__proto__":{"admin":true}}',
  () => '['.repeat(500),
  () => '{',
  (dice) => 'x'.repeat(dice.pick([3, 70_000, 300_000])),
  () => '7\r\n{"n":1}\r\n0\r\n\r\n',
  () => '7\r\n{"n":1}\r\n0\r\nX-After: y\r\n\r\n',
  () => '7;ext=x\r\n{"n":1}\r\n0\r\n',
  () => 'ffffffffffffffffff\r\n',
  () => '-1\r\n',
  () => '3\r\n[1]\r\n'.repeat(5000),
  () => '\u001f\u008b\u0008\u0000\u0000\u0000\u0000\u0000',
  () => 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
]

const GOOD = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n{"n":1}'

function textOf(dice: Dice): string {
  if (dice.chance(4)) return GOOD
  const head = [`${dice.pick(VERSIONS)} ${dice.pick(STATUSES)}`]
  for (let n = dice.below(6); n > 0; n--) head.push(dice.pick(HEADERS)(dice))
  const body = dice.pick(BODIES)(dice)
  if (dice.chance(2)) head.push(`Content-Length: ${body.length}`)
  let text = `${head.join(dice.chance(10) ? '\n' : '\r\n')}\r\n\r\n${body}`
  if (dice.chance(4))
    text =
      `HTTP/1.1 ${dice.pick(['100 Continue', '102 x', '103 Hints'])}\r\nX: y\r\n\r\n`.repeat(1 + dice.below(30)) + text
  if (dice.chance(6)) text += textOf(dice)
  if (dice.chance(4)) {
    const at = dice.below(text.length)
    text = text.slice(0, at) + String.fromCharCode(dice.below(256)) + text.slice(at + dice.below(3))
  }
  return dice.chance(3) ? text.slice(0, dice.below(text.length + 1)) : text
}

/** Answers one request, in one way or another, in pieces or not; afterwards the connection is ended, reset, or left as it is. */
export function answerBroken(socket: Socket, dice: Dice): void {
  const bytes = Buffer.from(textOf(dice), 'latin1')
  const cuts = dice.chance(3) ? Array.from({ length: dice.below(5) }, () => dice.below(bytes.length + 1)) : []
  const marks = [0, ...cuts.sort((a, b) => a - b), bytes.length]
  const pieces = marks.slice(1).map((mark, index) => bytes.subarray(marks[index], mark))
  const end = dice.pick(['end', 'end', 'reset', 'destroy', 'endless', 'open', 'open'] as const)
  const pause = dice.pick([0, 1, 20])
  const next = () => {
    const piece = pieces.shift()
    if (socket.destroyed) return
    if (piece !== undefined) {
      socket.write(piece)
      if (pause === 0 && pieces.length > 0) next()
      else setTimeout(next, pause)
    } else if (end === 'end') socket.end()
    else if (end === 'reset') socket.resetAndDestroy()
    else if (end === 'destroy') socket.destroy()
    else if (end === 'endless') {
      const more = () => {
        while (!socket.destroyed && socket.write(bytes));
      }
      if (bytes.length > 0) socket.on('drain', more)
      if (bytes.length > 0) more()
    }
  }
  if (dice.chance(10)) return
  next()
}
