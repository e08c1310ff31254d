import './corrupt.test.ts'
