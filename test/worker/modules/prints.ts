/** A handler that prints. */
import type { Job } from '../../../src/index.ts'

export default ({ data }: Job): void => {
  process.stdout.write(`${data} on stdout\n`)
  process.stderr.write(`${data} on stderr\n`)
}
