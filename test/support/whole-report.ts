/**
 * Loaded before each test file, by `--import`. A file reports to the runner through a pipe, and `--test-force-exit` ends it before
 * all is written: tests are missing from the report (https://github.com/nodejs/node/issues/64833). Blocking writes leave none behind.
 */
const handle: unknown = Reflect.get(process.stdout, '_handle')
const isPipe = (one: unknown): one is { setBlocking(on: boolean): void } =>
  typeof one === 'object' && one !== null && typeof Reflect.get(one, 'setBlocking') === 'function'

if (process.env.NODE_TEST_CONTEXT !== undefined && isPipe(handle)) handle.setBlocking(true)
