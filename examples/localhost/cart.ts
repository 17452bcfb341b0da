const output = document.querySelector('output')!;

document.querySelector('button')!.addEventListener('click', () => {
  output.value = String(Number(output.value) + 1);
});
