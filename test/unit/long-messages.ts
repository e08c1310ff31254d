/** A process that shows errors with messages of a megabyte each, in every way. It tells when it is over. */
import { errorSummary, safeError, safeText } from '../../src/values/errors/safe-error.ts'

const LENGTH = 1_000_000
/** What a mask begins with, or almost, one after the other. */
const PIECES = [
  ...['a', 'a.', 'a://', 'a://@', 'a://b ', '://', '@', '"', 'x"', '\n', '\n at ', ' '],
  ...['Received type a (', 'Received type a', 'Invalid URL: ', 'unrecognized token: ', ', with args beginning with:'],
]

for (const piece of PIECES) {
  for (const last of ['', '"', '@']) {
    const message = piece.repeat(Math.ceil(LENGTH / piece.length)) + last
    const error = Object.assign(new Error(message), { code: '22P02' })
    for (const show of [safeText, safeError, errorSummary]) show(error)
  }
}
console.log('over')
