import { interleavings } from './suite.ts'

interleavings('redis', [])
