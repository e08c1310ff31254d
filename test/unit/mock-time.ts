import type { TestContext } from 'node:test'

/** The timers and the monotonic clock, moved on together by so many ms. */
export function mockTime(t: TestContext): (ms: number) => void {
  let now = 1000
  t.mock.timers.enable({ apis: ['setTimeout'] })
  t.mock.method(performance, 'now', () => now)
  return (ms) => {
    now += ms
    t.mock.timers.tick(ms)
  }
}
