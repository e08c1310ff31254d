import './hangups.test.ts'
