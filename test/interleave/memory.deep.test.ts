import './memory.test.ts'
