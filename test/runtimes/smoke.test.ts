/** The package as it is published, on Deno and Bun; what runs there of the tests is in the deep files of this folder. */
import { smoke } from './runtime.ts'

smoke()
