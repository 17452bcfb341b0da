export const STYLE = `
  :root { font: 18px/1.5 system-ui, sans-serif; color: #23303f; background: #f3efe7; }
  body { margin: 0; display: grid; place-items: center; min-height: 100vh; }
  main { background: #fff; padding: 2rem 3rem; border-radius: 1rem; box-shadow: 0 1rem 3rem #23303f22; }
  h1 { margin: 0 0 1rem; letter-spacing: -0.02em; }
  ul { list-style: none; padding: 0; display: flex; gap: 1.5rem; }
  li { display: grid; justify-items: center; padding: 1.5rem; border-radius: 0.75rem; background: #f8f6f1; }
  .picture { font-size: 4rem; line-height: 1.2; }
  a { color: #0b6e4f; font-weight: 600; }
  form { display: grid; gap: 0.75rem; }
  input, button { font: inherit; padding: 0.6rem 0.8rem; border-radius: 0.5rem; border: 1px solid #c9c2b4; }
  button { background: #0b6e4f; color: #fff; border: 0; cursor: pointer; }
  #receipt { font-weight: 600; }
`;
