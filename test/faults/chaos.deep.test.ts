import './chaos.test.ts'
