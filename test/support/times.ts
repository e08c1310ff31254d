/**
 * `npm run test:times`: loaded before each test file, notes what it cost: seconds of CPU time of its process, of the processes that it
 * started and waited for, and seconds that passed. Other programs change the last figure, hardly the others.
 */
import { appendFileSync, readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { isMainThread } from 'node:worker_threads'

const file = process.argv[1] ?? ''
const report = process.env.MILLPOND_TEST_TIMES
if (report !== undefined && isMainThread && /\.test\.ts$/.test(file)) {
  process.on('exit', () => {
    // man 5 proc: utime, stime, cutime and cstime are the fields 14 to 17, in hundredths of a second.
    const stat = readFileSync('/proc/self/stat', 'utf8')
    const [user, system, childUser, childSystem] = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .slice(11, 15)
      .map(Number)
    const own = ((user ?? 0) + (system ?? 0)) / 100
    const children = ((childUser ?? 0) + (childSystem ?? 0)) / 100
    const passed = performance.now() / 1000
    appendFileSync(
      report,
      `${[own, children, passed].map((one) => one.toFixed(2)).join('\t')}\t${relative(process.cwd(), file)}\n`,
    )
  })
}
