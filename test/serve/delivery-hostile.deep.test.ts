import './delivery-hostile.test.ts'
