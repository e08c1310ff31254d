/** Loaded before each test file on Deno, whose node:test undoes what a test inside of a `describe` mocked only when told. */
import { afterEach, mock } from 'node:test'

afterEach(() => mock.reset())
