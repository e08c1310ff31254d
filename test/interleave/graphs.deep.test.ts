import './graphs.test.ts'
