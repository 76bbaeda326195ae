const button = document.querySelector('#help');
button.addEventListener('click', () => document.querySelector('opora-chat').open());
